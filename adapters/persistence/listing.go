package persistence

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ oauth.AuthorizationLister = (*Store)(nil)

// listPage is the number of grants that one query of a list returns, so that no query is long
// and few rows are in memory.
const listPage = 500

var (
	issuedCodes = "SELECT " + codeColumns + " FROM authorization_codes WHERE state = ? ORDER BY id"
	grantsAfter = "SELECT " + grantColumns + " FROM grants WHERE id > ? ORDER BY id LIMIT 500"
)

// Authorizations implements oauth.AuthorizationLister, in the order of the ids, which begin with
// the time. It reads the codes first, of which there are few because they live for minutes, so that
// it lists the code of a grant that is opened behind its page.
func (s *Store) Authorizations(ctx context.Context) iter.Seq2[oauth.Authorization, error] {
	return func(yield func(oauth.Authorization, error) bool) {
		codes, err := readRows(s.engine, s.reader.WithContext(ctx), codeTable, issuedCodes, oauth.IssuedCode)
		if err != nil {
			yield(nil, failed("listing the codes", err))
			return
		}
		for grant, err := range s.grants(ctx) {
			if err != nil {
				yield(nil, failed("listing the grants", err))
				return
			}
			older, redeemed := slices.BinarySearchFunc(codes, grant.ID, byID)
			if !yieldCodes(codes[:older], yield) || !yield(grant.restore(), nil) {
				return
			}
			if redeemed {
				older++
			}
			codes = codes[older:]
		}
		yieldCodes(codes, yield)
	}
}

func byID(code stored[codeRow], id string) int { return strings.Compare(code.row.ID, id) }

func yieldCodes(codes []stored[codeRow], yield func(oauth.Authorization, error) bool) bool {
	for _, code := range codes {
		if !yield(code.row.restore(), nil) {
			return false
		}
	}
	return true
}

// grants iterates over the grants page by page.
func (s *Store) grants(ctx context.Context) iter.Seq2[*grantRow, error] {
	return func(yield func(*grantRow, error) bool) {
		for last, more := "", true; more; {
			page, err := readRows(s.engine, s.reader.WithContext(ctx), grantTable, grantsAfter, last)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page {
				if !yield(&page[i].row, nil) {
					return
				}
				last = page[i].row.ID
			}
			more = len(page) == listPage
		}
	}
}

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

// Authorizations implements oauth.AuthorizationLister, in the order of the ids, which begin with
// the time. It reads the codes first, of which there are few because they live for minutes, so that
// it lists the code of a grant that is opened behind its page.
func (s *Store) Authorizations(ctx context.Context) iter.Seq2[oauth.Authorization, error] {
	return func(yield func(oauth.Authorization, error) bool) {
		issued, err := codes.read(s.reader.WithContext(ctx), "state = ? ORDER BY id", oauth.IssuedCode)
		if err != nil {
			yield(nil, failed("listing the codes", err))
			return
		}
		for grant, err := range s.grants(ctx) {
			if err != nil {
				yield(nil, failed("listing the grants", err))
				return
			}
			older, redeemed := slices.BinarySearchFunc(issued, grant.ID, byID)
			if !yieldCodes(issued[:older], yield) || !yield(oauth.RestoreGrant(grant), nil) {
				return
			}
			if redeemed {
				older++
			}
			issued = issued[older:]
		}
		yieldCodes(issued, yield)
	}
}

func byID(code oauth.CodeSnapshot, id string) int { return strings.Compare(code.ID, id) }

func yieldCodes(issued []oauth.CodeSnapshot, yield func(oauth.Authorization, error) bool) bool {
	for _, code := range issued {
		if !yield(oauth.RestoreCode(code), nil) {
			return false
		}
	}
	return true
}

// grants iterates over the grants page by page.
func (s *Store) grants(ctx context.Context) iter.Seq2[oauth.GrantSnapshot, error] {
	return func(yield func(oauth.GrantSnapshot, error) bool) {
		for last, more := "", true; more; {
			page, err := grants.read(s.reader.WithContext(ctx), "id > ? ORDER BY id LIMIT ?", last, listPage)
			if err != nil {
				yield(oauth.GrantSnapshot{}, err)
				return
			}
			for _, grant := range page {
				if !yield(grant, nil) {
					return
				}
				last = grant.ID
			}
			more = len(page) == listPage
		}
	}
}

package persistence

import (
	"context"
	"iter"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ oauth.AuthorizationLister = (*Store)(nil)

// Authorizations implements oauth.AuthorizationLister, in the order of the ids, which begin with
// the time. It reads the codes first, of which there are few because they live for minutes, so that
// it lists the code of a grant that is opened behind its page.
func (s *Store) Authorizations(ctx context.Context) iter.Seq2[oauth.Authorization, error] {
	return func(yield func(oauth.Authorization, error) bool) {
		reader := s.reader.WithContext(ctx)
		issued, err := codes.read(reader, "state = ? ORDER BY id", oauth.IssuedCode)
		if err != nil {
			yield(nil, failed("listing the codes", err))
			return
		}
		for grant, err := range grants.each(reader) {
			if err != nil {
				yield(nil, failed("listing the grants", err))
				return
			}
			for ; len(issued) > 0 && issued[0].ID <= grant.ID; issued = issued[1:] {
				if issued[0].ID < grant.ID && !yield(oauth.RestoreCode(issued[0]), nil) {
					return
				}
			}
			if !yield(oauth.RestoreGrant(grant), nil) {
				return
			}
		}
		for _, code := range issued {
			if !yield(oauth.RestoreCode(code), nil) {
				return
			}
		}
	}
}

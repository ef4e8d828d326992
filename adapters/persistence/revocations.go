package persistence

import (
	"context"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ oauth.EndWatcher = (*Store)(nil)

// EndedSince implements oauth.EndWatcher.
func (s *Store) EndedSince(ctx context.Context, since time.Time) (oauth.Ended, error) {
	ended := oauth.Ended{Grants: map[string]oauth.EndedGrant{}}
	err := grants.scan(s.reader.WithContext(ctx), func(row oauth.GrantSnapshot) {
		if !row.EndedAt.IsZero() {
			grant := oauth.EndedGrant{Reason: oauth.EndReason(row.EndReason)}
			copy(grant.HostPrint[:], row.HostPrint)
			ended.Grants[row.ID] = grant
			return
		}
		for _, token := range row.AccessTokens {
			if !token.RevokedAt.Before(since) && !token.RevokedAt.IsZero() {
				ended.Tokens = append(ended.Tokens, token.Digest)
			}
		}
	}, "revoked_at >= ?", since.UnixMilli())
	return ended, failed("asking which grants have ended", err)
}

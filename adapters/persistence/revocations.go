package persistence

import (
	"context"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ oauth.EndWatcher = (*Store)(nil)

// endedAfter begins a page after the last row of the page before; ids order the rows of one
// millisecond.
const endedAfter = "revoked_at >= ? AND (revoked_at > ? OR id > ?) ORDER BY revoked_at, id LIMIT ?"

// EndedSince implements oauth.EndWatcher.
func (s *Store) EndedSince(ctx context.Context, since time.Time) (oauth.Ended, error) {
	ended := oauth.Ended{Grants: map[string]oauth.EndedGrant{}}
	reader := s.reader.WithContext(ctx)
	for last := (oauth.GrantSnapshot{RevokedAt: since}); ; {
		at := last.RevokedAt.UnixMilli()
		page, err := grants.read(reader, endedAfter, at, at, last.ID, pageSize)
		if err != nil {
			return oauth.Ended{}, failed("asking which grants have ended", err)
		}
		for _, row := range page {
			addEnded(&ended, row, since)
		}
		if len(page) < pageSize {
			return ended, nil
		}
		last = page[len(page)-1]
	}
}

// addEnded adds the grant if it has ended, or its revoked tokens.
func addEnded(ended *oauth.Ended, row oauth.GrantSnapshot, since time.Time) {
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
}

package storespec

import (
	"context"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

func (m *memory) EndedSince(_ context.Context, since time.Time) (ended oauth.Ended, err error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	ended.Grants = map[string]oauth.EndedGrant{}
	for id, grant := range m.kept.grants {
		if !grant.EndedAt.IsZero() && !grant.EndedAt.Before(since) {
			ended.Grants[id] = oauth.EndedGrant{
				Reason:    oauth.EndReason(grant.EndReason),
				HostPrint: oauth.Fingerprint(grant.HostPrint),
			}
		}
	}
	for _, grant := range m.kept.grants {
		for _, token := range grant.AccessTokens {
			if !token.RevokedAt.IsZero() && !token.RevokedAt.Before(since) {
				ended.Tokens = append(ended.Tokens, token.Digest)
			}
		}
	}
	return ended, nil
}

func (f *flawed) EndedSince(ctx context.Context, since time.Time) (oauth.Ended, error) {
	return f.ended(ctx, since)
}

// answering replaces the answer of EndedSince.
func answering(spoil func(f *flawed, since time.Time) oauth.Ended) func(*flawed) {
	return func(f *flawed) {
		f.ended = func(_ context.Context, since time.Time) (oauth.Ended, error) { return spoil(f, since), nil }
	}
}

func (f *flawed) correct(since time.Time) oauth.Ended {
	ended, _ := f.memory.EndedSince(context.Background(), since)
	return ended
}

// revocationFlaws break the contract of oauth.EndWatcher.
var revocationFlaws = map[string]func(f *flawed){
	"leaves out what ended exactly at the time": answering(func(f *flawed, since time.Time) oauth.Ended {
		return f.correct(since.Add(time.Millisecond))
	}),
	"returns what ended a millisecond before the time": answering(func(f *flawed, since time.Time) oauth.Ended {
		return f.correct(since.Add(-time.Millisecond))
	}),
	"does not tell whose grant ended": answering(func(f *flawed, since time.Time) oauth.Ended {
		ended := f.correct(since)
		for id, grant := range ended.Grants {
			ended.Grants[id] = oauth.EndedGrant{Reason: grant.Reason}
		}
		return ended
	}),
	"returns grants but no tokens": answering(func(f *flawed, since time.Time) oauth.Ended {
		return oauth.Ended{Grants: f.correct(since).Grants}
	}),
	"returns active grants": answering(func(f *flawed, since time.Time) oauth.Ended {
		ended := f.correct(since)
		for id := range f.kept.grants {
			ended.Grants[id] = oauth.EndedGrant{}
		}
		return ended
	}),
}

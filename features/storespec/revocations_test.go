package storespec

import (
	"context"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

func (m *memory) EndedSince(_ context.Context, since time.Time) (ended oauth.Ended, err error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for id, grant := range m.kept.grants {
		if !grant.EndedAt.IsZero() && !grant.EndedAt.Before(since) {
			ended.Grants = append(ended.Grants, id)
		}
	}
	for digest, secret := range m.kept.secrets {
		if !secret.RevokedAt.IsZero() && !secret.RevokedAt.Before(since) {
			ended.Tokens = append(ended.Tokens, oauth.Digest([]byte(digest)))
		}
	}
	return ended, nil
}

func (f *flawed) EndedSince(ctx context.Context, since time.Time) (oauth.Ended, error) {
	return f.ended(ctx, since)
}

// watching spoils what the memory has to tell.
func watching(spoil func(f *flawed, since time.Time) oauth.Ended) func(*flawed) {
	return func(f *flawed) {
		f.ended = func(_ context.Context, since time.Time) (oauth.Ended, error) { return spoil(f, since), nil }
	}
}

func (f *flawed) truly(since time.Time) oauth.Ended {
	ended, _ := f.memory.EndedSince(context.Background(), since)
	return ended
}

// watchingFlaws are those of an EndWatcher.
var watchingFlaws = map[string]func(f *flawed){
	"overlooks what ends at the very instant": watching(func(f *flawed, since time.Time) oauth.Ended { return f.truly(since.Add(time.Millisecond)) }),
	"tells of what ended before":              watching(func(f *flawed, since time.Time) oauth.Ended { return f.truly(since.Add(-time.Millisecond)) }),
	"tells of whole grants only":              watching(func(f *flawed, since time.Time) oauth.Ended { return oauth.Ended{Grants: f.truly(since).Grants} }),
	"takes the living for ended": watching(func(f *flawed, since time.Time) oauth.Ended {
		ended := f.truly(since)
		for id := range f.kept.grants {
			ended.Grants = append(ended.Grants, id)
		}
		return ended
	}),
}

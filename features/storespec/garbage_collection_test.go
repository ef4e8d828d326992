package storespec

import (
	"context"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

var garbageFlaws = map[string]func(f *flawed){
	"never deletes codes": func(f *flawed) {
		f.delete = func(ctx context.Context, now time.Time) (int, error) {
			codes := f.kept.codes
			forgotten, err := f.memory.DeleteExpired(ctx, now)
			f.kept.codes = codes
			return forgotten, err
		}
	},
	"never deletes used assertions": func(f *flawed) {
		f.delete = func(ctx context.Context, now time.Time) (int, error) {
			used := f.kept.used
			forgotten, err := f.memory.DeleteExpired(ctx, now)
			f.kept.used = used
			return forgotten, err
		}
	},
	"deletes a millisecond too early": func(f *flawed) {
		f.delete = func(ctx context.Context, now time.Time) (int, error) {
			return f.memory.DeleteExpired(ctx, now.Add(time.Millisecond))
		}
	},
	"deletes a millisecond too late": func(f *flawed) {
		f.delete = func(ctx context.Context, now time.Time) (int, error) {
			return f.memory.DeleteExpired(ctx, now.Add(-time.Millisecond))
		}
	},
	"returns no number of deleted rows": func(f *flawed) {
		f.delete = func(ctx context.Context, now time.Time) (int, error) {
			_, err := f.memory.DeleteExpired(ctx, now)
			return 0, err
		}
	},
	"deletes no grant": func(f *flawed) {
		f.delete = func(ctx context.Context, now time.Time) (int, error) {
			grants := f.kept.grants
			forgotten, err := f.memory.DeleteExpired(ctx, now)
			f.kept.grants = grants
			return forgotten, err
		}
	},
	"deletes a grant by the end that it had first": func(f *flawed) {
		first := map[string]time.Time{}
		f.change = func(ctx context.Context, of oauth.Selection, change closure) error {
			if _, known := first[of.Grant]; !known && of.Grant != "" {
				first[of.Grant] = f.kept.grants[of.Grant].ForgetAfter
			}
			return f.memory.Change(ctx, of, change)
		}
		f.delete = func(ctx context.Context, now time.Time) (int, error) {
			for id, end := range first {
				if !end.After(now) {
					delete(f.kept.grants, id)
				}
			}
			return f.memory.DeleteExpired(ctx, now)
		}
	},
}

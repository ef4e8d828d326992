package storespec

import (
	"context"
	"maps"
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
	"deletes refresh tokens before their grant": func(f *flawed) {
		f.delete = func(ctx context.Context, now time.Time) (int, error) {
			forgotten, err := f.memory.DeleteExpired(ctx, now)
			maps.DeleteFunc(f.kept.secrets, func(_ string, secret oauth.SecretSnapshot) bool {
				return secret.Kind == string(oauth.RefreshTokenSecret)
			})
			return forgotten, err
		}
	},
	"keeps the tokens of a deleted grant": func(f *flawed) {
		f.delete = func(ctx context.Context, now time.Time) (int, error) {
			before := map[string]oauth.SecretSnapshot{}
			for digest, secret := range f.kept.secrets {
				if secret.ForgetAfter.IsZero() || secret.ForgetAfter.After(now) {
					before[digest] = secret
				}
			}
			forgotten, err := f.memory.DeleteExpired(ctx, now)
			f.restore(before)
			return forgotten, err
		}
	},
}

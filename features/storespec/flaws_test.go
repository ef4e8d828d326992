package storespec

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// openWith returns a correct store, or one with the flaw of that name.
func openWith(flaw string) oauth.Store {
	m := newMemory()
	f := &flawed{m, m.AddCode, m.Code, m.RedeemCode, m.Grant, m.UpdateGrant, m.AuthorizationsOf, m.UpdateAuthorizationsOf, m.UseOnce, m.DeleteExpired, m.EndedSince, m.Counts, m.Count}
	for _, flaws := range allFlaws {
		if spoil := flaws[flaw]; spoil != nil {
			spoil(f)
		}
	}
	return f
}

func reopenWith(flaw string) func(oauth.Store) oauth.Store {
	return func(store oauth.Store) oauth.Store {
		if flaw == "is empty when it is reopened" {
			return openWith("")
		}
		return store
	}
}

var allFlaws = []map[string]func(f *flawed){flaws, garbageFlaws, revocationFlaws, counterFlaws}

var flaws = map[string]func(f *flawed){
	"updates outside of a transaction": func(f *flawed) { f.update = f.updateOutsideTransaction },
	"redeems outside of a transaction": func(f *flawed) { f.redeem = f.redeemOutsideTransaction },
	"supersedes outside of a transaction": func(f *flawed) {
		f.add = func(ctx context.Context, code *oauth.AuthorizationCode, supersede func(*oauth.AuthorizationCode) error) error {
			f.mutex.Lock()
			earlier, found := f.kept.codes[code.ID()]
			f.mutex.Unlock()
			if found {
				if err := supersede(oauth.RestoreCode(earlier)); err != nil {
					return err
				}
			}
			return f.memory.AddCode(ctx, code, replace)
		}
	},
	"does not roll back a refused redemption": func(f *flawed) {
		f.redeem = func(ctx context.Context, value oauth.Digest, redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) (refused error) {
			err := f.memory.RedeemCode(ctx, value, func(c *oauth.AuthorizationCode) (grant *oauth.AccessGrant, err error) {
				grant, refused = redeem(c)
				return grant, nil
			})
			return errors.Join(err, refused)
		}
	},
	"stores the redeemed code without its grant": func(f *flawed) {
		f.redeem = func(ctx context.Context, value oauth.Digest, redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error {
			var spent *oauth.AuthorizationCode
			err := f.memory.RedeemCode(ctx, value, func(c *oauth.AuthorizationCode) (*oauth.AccessGrant, error) { spent = c; return redeem(c) })
			if errors.Is(err, oauth.ErrDuplicate) {
				f.putCode(spent)
			}
			return err
		}
	},
	"does not store the redeemed code": func(f *flawed) {
		f.redeem = func(ctx context.Context, value oauth.Digest, redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error {
			return f.memory.RedeemCode(ctx, value, func(c *oauth.AuthorizationCode) (*oauth.AccessGrant, error) {
				copied := *c
				return redeem(&copied)
			})
		}
	},
	"does not roll back a refused change": func(f *flawed) {
		f.update = func(ctx context.Context, secret oauth.Digest, change func(*oauth.AccessGrant) error) (refused error) {
			err := f.memory.UpdateGrant(ctx, secret, func(g *oauth.AccessGrant) error { refused = change(g); return nil })
			return errors.Join(err, refused)
		}
	},
	"swallows the error of a change": func(f *flawed) {
		f.update = func(ctx context.Context, secret oauth.Digest, change func(*oauth.AccessGrant) error) error {
			if err := f.memory.UpdateGrant(ctx, secret, change); errors.Is(err, oauth.ErrNotFound) {
				return err
			}
			return nil
		}
	},
	"drops a field of a grant":  tamperGrant(func(g *oauth.GrantSnapshot, _ []oauth.SecretSnapshot) { g.HostWrap = nil }),
	"drops a field of a secret": tamperGrant(func(_ *oauth.GrantSnapshot, s []oauth.SecretSnapshot) { s[0].Scopes = "" }),
	"drops a field of a code":   tamperCode(func(c *oauth.CodeSnapshot) { c.HostWrap = nil }),
	"truncates times to seconds": tamperGrant(func(g *oauth.GrantSnapshot, _ []oauth.SecretSnapshot) {
		g.CreatedAt = g.CreatedAt.Truncate(time.Second)
	}),
	"returns local times": tamperGrant(func(g *oauth.GrantSnapshot, _ []oauth.SecretSnapshot) {
		g.CreatedAt = g.CreatedAt.In(time.FixedZone("here", 3600))
	}),
	"does not store zero values": func(f *flawed) { f.update = f.updateNonZero },
	"loses the other tokens of a grant": func(f *flawed) {
		f.update = func(ctx context.Context, secret oauth.Digest, change func(*oauth.AccessGrant) error) error {
			return f.memory.transaction(func(next contents) error {
				grant, err := next.find(secret)
				if err == nil {
					err = change(grant)
				}
				if err != nil {
					return err
				}
				next.remove(grant.ID())
				return next.put(grant, "")
			})
		}
	},
	"replaces a code without calling supersede": func(f *flawed) {
		f.add = func(ctx context.Context, code *oauth.AuthorizationCode, _ func(*oauth.AuthorizationCode) error) error {
			return f.memory.AddCode(ctx, code, replace)
		}
	},
	"keeps the superseded code": func(f *flawed) {
		f.add = func(ctx context.Context, code *oauth.AuthorizationCode, supersede func(*oauth.AuthorizationCode) error) error {
			earlier, found := f.kept.codes[code.ID()]
			err := f.memory.AddCode(ctx, code, supersede)
			if found && err == nil {
				earlier.ID = "superseded"
				f.kept.codes[earlier.ID] = earlier
			}
			return err
		}
	},
	"accepts duplicate codes": func(f *flawed) {
		f.add = func(ctx context.Context, code *oauth.AuthorizationCode, supersede func(*oauth.AuthorizationCode) error) error {
			err := f.memory.AddCode(ctx, code, supersede)
			if errors.Is(err, oauth.ErrDuplicate) {
				f.putCode(code)
				return nil
			}
			return err
		}
	},
	"accepts duplicate tokens in a change": func(f *flawed) {
		f.update = func(ctx context.Context, secret oauth.Digest, change func(*oauth.AccessGrant) error) error {
			grant, err := f.memory.Grant(ctx, secret)
			if err == nil {
				err = change(grant)
			}
			if err == nil {
				f.free(grant)
				f.put(grant)
			}
			return err
		}
	},
	"returns an error of its own for an unknown token": func(f *flawed) {
		f.grant = func(ctx context.Context, secret oauth.Digest) (*oauth.AccessGrant, error) {
			grant, err := f.memory.Grant(ctx, secret)
			if err != nil {
				return nil, errors.New("no rows")
			}
			return grant, nil
		}
	},
	"returns stale grants from a cache": func(f *flawed) {
		cache := map[oauth.Digest]oauth.AccessGrant{}
		f.grant = func(ctx context.Context, secret oauth.Digest) (*oauth.AccessGrant, error) {
			if cached, found := cache[secret]; found {
				return &cached, nil
			}
			grant, err := f.memory.Grant(ctx, secret)
			if err == nil {
				cache[secret] = *grant
			}
			return grant, err
		}
	},
	"returns its own records instead of copies": func(f *flawed) {
		shared := map[oauth.Digest]*oauth.AccessGrant{}
		f.grant = func(ctx context.Context, secret oauth.Digest) (_ *oauth.AccessGrant, err error) {
			if shared[secret] == nil {
				shared[secret], err = f.memory.Grant(ctx, secret)
			}
			return shared[secret], err
		}
	},
	"lists the newest first": func(f *flawed) {
		f.list = func(ctx context.Context, host oauth.Fingerprint) (oauth.Authorizations, error) {
			found, err := f.memory.AuthorizationsOf(ctx, host)
			slices.Reverse(found.Grants)
			return found, err
		}
	},
	"lists grants only": func(f *flawed) {
		f.list = func(ctx context.Context, host oauth.Fingerprint) (oauth.Authorizations, error) {
			found, err := f.memory.AuthorizationsOf(ctx, host)
			return oauth.Authorizations{Grants: found.Grants}, err
		}
	},
	"changes the grants of every host token": func(f *flawed) {
		f.updateOf = func(ctx context.Context, _ oauth.Fingerprint, change func(oauth.Authorizations) error) error {
			for _, grant := range f.kept.grants {
				if err := f.memory.UpdateAuthorizationsOf(ctx, oauth.Fingerprint(grant.HostPrint), change); err != nil {
					return err
				}
			}
			return nil
		}
	},
	"does not roll back a refused change of all grants": func(f *flawed) {
		f.updateOf = func(ctx context.Context, host oauth.Fingerprint, change func(oauth.Authorizations) error) (refused error) {
			err := f.memory.UpdateAuthorizationsOf(ctx, host, func(found oauth.Authorizations) error { refused = change(found); return nil })
			return errors.Join(err, refused)
		}
	},
	"changes a copy of the codes": func(f *flawed) {
		f.updateOf = func(ctx context.Context, host oauth.Fingerprint, change func(oauth.Authorizations) error) error {
			found, _ := f.memory.AuthorizationsOf(ctx, host)
			return f.memory.UpdateAuthorizationsOf(ctx, host, func(all oauth.Authorizations) error {
				return change(oauth.Authorizations{Codes: found.Codes, Grants: all.Grants})
			})
		}
	},
	"accepts used assertions again": func(f *flawed) {
		f.use = func(ctx context.Context, assertion oauth.Digest, forgetAfter time.Time) error {
			if err := f.memory.UseOnce(ctx, assertion, forgetAfter); !errors.Is(err, oauth.ErrDuplicate) {
				return err
			}
			return nil
		}
	},
	"uses assertions outside of a transaction": func(f *flawed) {
		both := newBarrier()
		f.use = func(ctx context.Context, assertion oauth.Digest, forgetAfter time.Time) error {
			f.mutex.Lock()
			_, used := f.kept.used[assertion]
			f.mutex.Unlock()
			both.wait()
			if used {
				return oauth.ErrDuplicate
			}
			_ = f.memory.UseOnce(ctx, assertion, forgetAfter)
			return nil
		}
	},
	"never empties SuccessorBox": func(f *flawed) {
		f.delete = func(ctx context.Context, now time.Time) (int, error) {
			before := f.kept.grants
			forgotten, err := f.memory.DeleteExpired(ctx, now)
			for id, grant := range f.kept.grants {
				grant.SuccessorBox = before[id].SuccessorBox
				f.kept.grants[id] = grant
			}
			return forgotten, err
		}
	},
	"empties HostWrap of one token only": func(f *flawed) {
		f.update = func(ctx context.Context, secret oauth.Digest, change func(*oauth.AccessGrant) error) error {
			before := f.kept.secrets
			err := f.memory.UpdateGrant(ctx, secret, change)
			for digest, held := range f.kept.secrets {
				if held.HostWrap == nil && digest != string(secret[:]) {
					held.HostWrap = before[digest].HostWrap
					f.kept.secrets[digest] = held
				}
			}
			return err
		}
	},
}

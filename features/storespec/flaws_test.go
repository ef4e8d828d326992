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
	f := &flawed{
		memory: m,
		add:    m.AddCode,
		code:   m.Code,
		redeem: func(ctx context.Context, id string,
			redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error {
			return m.RedeemCode(ctx, oauth.UnreadCode(id), redeem)
		},
		grant: m.Grant,
		update: func(ctx context.Context, id string, change func(*oauth.AccessGrant) error) error {
			return m.UpdateGrant(ctx, oauth.UnreadGrant(id), change)
		},
		record:   m.RecordUse,
		list:     m.AuthorizationsOf,
		updateOf: m.UpdateAuthorizationsOf,
		use:      m.UseOnce,
		delete:   m.DeleteExpired,
		ended:    m.EndedSince,
	}
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

var allFlaws = []map[string]func(f *flawed){flaws, garbageFlaws, revocationFlaws}

var flaws = map[string]func(f *flawed){
	"updates outside of a transaction": func(f *flawed) { f.update = f.updateOutsideTransaction },
	"redeems outside of a transaction": func(f *flawed) { f.redeem = f.redeemOutsideTransaction },
	"supersedes outside of a transaction": func(f *flawed) {
		f.add = func(ctx context.Context, code *oauth.AuthorizationCode,
			supersede func(*oauth.AuthorizationCode) error) error {
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
		f.redeem = func(ctx context.Context, id string,
			redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) (refused error) {
			keep := func(c *oauth.AuthorizationCode) (grant *oauth.AccessGrant, err error) {
				grant, refused = redeem(c)
				return grant, nil
			}
			return errors.Join(f.memory.RedeemCode(ctx, oauth.UnreadCode(id), keep), refused)
		}
	},
	"stores the redeemed code without its grant": func(f *flawed) {
		f.redeem = func(ctx context.Context, id string,
			redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error {
			err := f.memory.RedeemCode(ctx, oauth.UnreadCode(id), redeem)
			delete(f.kept.grants, id)
			return err
		}
	},
	"does not store the redeemed code": func(f *flawed) {
		f.redeem = func(ctx context.Context, id string,
			redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error {
			lose := func(c *oauth.AuthorizationCode) (*oauth.AccessGrant, error) {
				copied := *c
				return redeem(&copied)
			}
			return f.memory.RedeemCode(ctx, oauth.UnreadCode(id), lose)
		}
	},
	"does not roll back a refused change": func(f *flawed) {
		f.update = func(ctx context.Context, id string, change func(*oauth.AccessGrant) error) (refused error) {
			keep := func(g *oauth.AccessGrant) error { refused = change(g); return nil }
			return errors.Join(f.memory.UpdateGrant(ctx, oauth.UnreadGrant(id), keep), refused)
		}
	},
	"swallows the error of a change": func(f *flawed) {
		f.update = func(ctx context.Context, id string, change func(*oauth.AccessGrant) error) error {
			if err := f.memory.UpdateGrant(ctx, oauth.UnreadGrant(id), change); errors.Is(err, oauth.ErrNotFound) {
				return err
			}
			return nil
		}
	},
	"drops a field of a grant": tamperGrant(func(g *oauth.GrantSnapshot) { g.HostWrap = nil }),
	"drops a field of an access token": tamperGrant(func(g *oauth.GrantSnapshot) {
		for i := range g.AccessTokens {
			g.AccessTokens[i].Scopes = ""
		}
	}),
	"drops a field of a rotation": tamperGrant(func(g *oauth.GrantSnapshot) {
		for i := range g.Rotations {
			g.Rotations[i].Access = 0
		}
	}),
	"drops a field of a code": tamperCode(func(c *oauth.CodeSnapshot) { c.HostWrap = nil }),
	"truncates times to seconds": tamperGrant(func(g *oauth.GrantSnapshot) {
		g.CreatedAt = g.CreatedAt.Truncate(time.Second)
	}),
	"returns local times": tamperGrant(func(g *oauth.GrantSnapshot) {
		g.CreatedAt = g.CreatedAt.In(time.FixedZone("here", 3600))
	}),
	"does not store zero values": func(f *flawed) { f.update = f.updateNonZero },
	"replaces a code without calling supersede": func(f *flawed) {
		f.add = func(ctx context.Context, code *oauth.AuthorizationCode, _ func(*oauth.AuthorizationCode) error) error {
			return f.memory.AddCode(ctx, code, replace)
		}
	},
	"keeps the superseded code": func(f *flawed) {
		f.add = func(ctx context.Context, code *oauth.AuthorizationCode,
			supersede func(*oauth.AuthorizationCode) error) error {
			earlier, found := f.kept.codes[code.ID()]
			err := f.memory.AddCode(ctx, code, supersede)
			if found {
				f.kept.codes[code.ID()] = earlier
			}
			return err
		}
	},
	"returns an error of its own for an unknown grant": func(f *flawed) {
		f.grant = func(ctx context.Context, id string) (*oauth.AccessGrant, error) {
			grant, err := f.memory.Grant(ctx, id)
			if err != nil {
				return nil, errors.New("no rows")
			}
			return grant, nil
		}
	},
	"returns stale grants from a cache": func(f *flawed) {
		cache := map[string]oauth.AccessGrant{}
		f.grant = func(ctx context.Context, id string) (*oauth.AccessGrant, error) {
			if cached, found := cache[id]; found {
				return &cached, nil
			}
			grant, err := f.memory.Grant(ctx, id)
			if err == nil {
				cache[id] = *grant
			}
			return grant, err
		}
	},
	"returns its own records instead of copies": func(f *flawed) {
		shared := map[string]*oauth.AccessGrant{}
		f.grant = func(ctx context.Context, id string) (_ *oauth.AccessGrant, err error) {
			if shared[id] == nil {
				shared[id], err = f.memory.Grant(ctx, id)
			}
			return shared[id], err
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
	"finds grants by their first host token": func(f *flawed) {
		first := map[oauth.Fingerprint]oauth.Authorizations{}
		f.list = func(ctx context.Context, host oauth.Fingerprint) (oauth.Authorizations, error) {
			if found, listed := first[host]; listed {
				return found, nil
			}
			return f.memory.AuthorizationsOf(ctx, host)
		}
		f.updateOf = func(ctx context.Context, host oauth.Fingerprint, change func(oauth.Authorizations) error) error {
			found, _ := f.memory.AuthorizationsOf(ctx, host)
			err := f.memory.UpdateAuthorizationsOf(ctx, host, change)
			if again, _ := f.memory.AuthorizationsOf(ctx, host); len(again.Grants) < len(found.Grants) &&
				found.Grants[0].EndReason() == "" {
				first[host] = found
			}
			return err
		}
	},
	"does not roll back a refused change of all grants": func(f *flawed) {
		f.updateOf = func(ctx context.Context, host oauth.Fingerprint,
			change func(oauth.Authorizations) error) (refused error) {
			err := f.memory.UpdateAuthorizationsOf(ctx, host, func(found oauth.Authorizations) error {
				refused = change(found)
				return nil
			})
			return errors.Join(err, refused)
		}
	},
	"changes all grants outside of a transaction": func(f *flawed) { f.updateOf = f.updateGrantsOutsideTransaction },
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
	"runs a closure again on what it has changed": func(f *flawed) { f.update = f.updateAgain },
	"records the earlier of two last uses": func(f *flawed) {
		f.record = func(_ context.Context, uses map[string]oauth.Use) error {
			return f.transaction(func(next contents) error {
				for id, use := range uses {
					if row, found := next.grants[id]; found {
						row.LastUsedAt, row.LastUsedToken = use.At, use.Access
						next.grants[id] = row
					}
				}
				return nil
			})
		}
	},
	"records one last use only": func(f *flawed) {
		f.record = func(ctx context.Context, uses map[string]oauth.Use) error {
			for id, use := range uses {
				return f.memory.RecordUse(ctx, map[string]oauth.Use{id: use})
			}
			return nil
		}
	},
	"undoes a change when it records a use": func(f *flawed) {
		first := map[string]oauth.GrantSnapshot{}
		f.record = func(ctx context.Context, uses map[string]oauth.Use) error {
			return f.transaction(func(next contents) error {
				for id, use := range uses {
					if row, found := first[id]; found {
						next.grants[id] = row
						continue
					}
					row := next.grants[id]
					row.LastUsedAt, row.LastUsedToken = use.At, use.Access
					next.grants[id], first[id] = row, row
				}
				return nil
			})
		}
	},
	"undoes a use by a change": func(f *flawed) {
		f.update = func(ctx context.Context, id string, change func(*oauth.AccessGrant) error) error {
			grant, err := f.memory.Grant(ctx, id)
			if err == nil {
				err = change(grant)
			}
			if err == nil {
				f.mutex.Lock()
				defer f.mutex.Unlock()
				f.kept.grants[id] = grant.Snapshot()
			}
			return err
		}
	},
}

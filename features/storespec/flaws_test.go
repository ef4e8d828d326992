package storespec

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// openWith returns a correct store, or one with the flaw of that name.
func openWith(flaw string) oauth.Store {
	m := newMemory()
	f := &flawed{
		memory: m,
		find:   m.Find,
		change: m.Change,
		record: m.RecordUse,
		use:    m.UseOnce,
		delete: m.DeleteExpired,
		ended:  m.EndedSince,
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

var allFlaws = []map[string]func(f *flawed){flaws, garbageFlaws, revocationFlaws, listingFlaws}

var flaws = map[string]func(f *flawed){
	"updates outside of a transaction":            changing(ofGrant, outsideTransaction),
	"redeems outside of a transaction":            changing(ofCode, outsideTransaction),
	"supersedes outside of a transaction":         changing(ofCode, outsideTransaction),
	"changes all grants outside of a transaction": changing(ofHost, outsideForGrants),
	"does not roll back a refused change": changing(ofAny,
		func(f *flawed, ctx context.Context, of oauth.Selection, change closure) (refused error) {
			keep := func(all *oauth.Authorizations) error {
				refused = change(all)
				return nil
			}
			return errors.Join(f.memory.Change(ctx, of, keep), refused)
		}),
	"swallows the error of a change": changing(ofAny,
		func(f *flawed, ctx context.Context, of oauth.Selection, change closure) error {
			_ = f.memory.Change(ctx, of, change)
			return nil
		}),
	"stores the redeemed code without its grant": changing(ofCode,
		func(f *flawed, ctx context.Context, of oauth.Selection, change closure) error {
			return f.memory.Change(ctx, of, func(all *oauth.Authorizations) error {
				err := change(all)
				all.Grants = nil
				return err
			})
		}),
	"does not store the redeemed code": changing(ofCode,
		func(f *flawed, ctx context.Context, of oauth.Selection, change closure) error {
			return f.memory.Change(ctx, of, func(all *oauth.Authorizations) error {
				err := change(all)
				if len(all.Grants) > 0 {
					all.Codes = nil
				}
				return err
			})
		}),
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
	"does not store zero values": changing(ofGrant, nonZero),
	"replaces a code without a look at the earlier one": changing(ofCode,
		func(f *flawed, ctx context.Context, of oauth.Selection, change closure) error {
			if of.Known == nil || len(of.Known.Codes) > 0 {
				return f.memory.Change(ctx, of, change)
			}
			all := *of.Known
			if err := change(&all); err != nil {
				return err
			}
			return f.transaction(func(next contents) error {
				next.put(all)
				return nil
			})
		}),
	"keeps the superseded code": changing(ofCode,
		func(f *flawed, ctx context.Context, of oauth.Selection, change closure) error {
			return f.memory.Change(ctx, of, func(all *oauth.Authorizations) error {
				earlier := slices.Clone(all.Codes)
				if err := change(all); err != nil {
					return err
				}
				if len(earlier) > 0 && len(all.Grants) == 0 {
					all.Codes = earlier
				}
				return nil
			})
		}),
	"returns an error for an unknown grant": func(f *flawed) {
		f.find = func(ctx context.Context, of oauth.Selection) (oauth.Authorizations, error) {
			found, err := f.memory.Find(ctx, of)
			if err == nil && of.Grant != "" && len(found.Grants) == 0 {
				err = errors.New("no rows")
			}
			return found, err
		}
	},
	"returns stale grants from a cache": func(f *flawed) {
		cache := map[string]oauth.AccessGrant{}
		f.find = func(ctx context.Context, of oauth.Selection) (oauth.Authorizations, error) {
			if cached, found := cache[of.Grant]; found {
				return oauth.Authorizations{Grants: []*oauth.AccessGrant{&cached}}, nil
			}
			found, err := f.memory.Find(ctx, of)
			if of.Grant != "" && len(found.Grants) > 0 {
				cache[of.Grant] = *found.Grants[0]
			}
			return found, err
		}
	},
	"returns its own records instead of copies": func(f *flawed) {
		shared := map[string]oauth.Authorizations{}
		f.find = func(ctx context.Context, of oauth.Selection) (_ oauth.Authorizations, err error) {
			if _, found := shared[of.Grant]; !found || of.Grant == "" {
				shared[of.Grant], err = f.memory.Find(ctx, of)
			}
			return shared[of.Grant], err
		}
	},
	"lists grants only": func(f *flawed) {
		f.find = func(ctx context.Context, of oauth.Selection) (oauth.Authorizations, error) {
			found, err := f.memory.Find(ctx, of)
			if of.Host != nil {
				found.Codes = nil
			}
			return found, err
		}
	},
	"changes the grants of every host token": changing(ofHost,
		func(f *flawed, ctx context.Context, _ oauth.Selection, change closure) (err error) {
			for _, grant := range maps.Clone(f.kept.grants) {
				err = errors.Join(err, f.memory.Change(ctx, oauth.Selection{Host: grant.HostPrint}, change))
			}
			return err
		}),
	"finds grants by their first host token": func(f *flawed) {
		first := map[string]oauth.Authorizations{}
		f.find = func(ctx context.Context, of oauth.Selection) (oauth.Authorizations, error) {
			if found, listed := first[string(of.Host)]; listed {
				return found, nil
			}
			return f.memory.Find(ctx, of)
		}
		f.change = func(ctx context.Context, of oauth.Selection, change closure) error {
			found, _ := f.memory.Find(ctx, of)
			err := f.memory.Change(ctx, of, change)
			if again, _ := f.memory.Find(ctx, of); of.Host != nil && len(again.Grants) < len(found.Grants) &&
				found.Grants[0].EndReason() == "" {
				first[string(of.Host)] = found
			}
			return err
		}
	},
	"changes a copy of the codes": changing(ofHost,
		func(f *flawed, ctx context.Context, of oauth.Selection, change closure) error {
			found, _ := f.memory.Find(ctx, of)
			return f.memory.Change(ctx, of, func(all *oauth.Authorizations) error {
				return change(&oauth.Authorizations{Codes: found.Codes, Grants: all.Grants})
			})
		}),
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
	"runs a closure again on what it has changed": changing(ofGrant, onWhatItChanged),
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
	"undoes a use by a change": changing(ofAny,
		func(f *flawed, ctx context.Context, of oauth.Selection, change closure) error {
			all, err := f.memory.Find(ctx, of)
			if err == nil {
				err = change(&all)
			}
			if err != nil {
				return err
			}
			return f.transaction(func(next contents) error {
				next.put(oauth.Authorizations{Codes: all.Codes})
				for _, grant := range all.Grants {
					next.grants[grant.ID()] = grant.Snapshot()
				}
				return nil
			})
		}),
}

package application

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pasteport/pasteport/application/cache"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	// grantTrusted is how long a process trusts a grant that it has read, and may accept a token
	// that another process has revoked.
	grantTrusted = time.Second
	maxTrusted   = 4096 // grants in the cache
)

// cachingStore is a store with a cache of the grants that calls use. A change through this process
// drops its grants from the cache before it is confirmed.
type cachingStore struct {
	oauth.Store
	now     func() time.Time // the machine's clock, not Ports.Now, because awaitOthers waits in real time
	trusted *cache.LRU[string, *trustedGrant]
}

// trustedGrant is the place of a grant in the cache, added before the grant is read. A change
// removes the place, so a read that began before the change fills a place outside of the cache.
type trustedGrant struct {
	readAt time.Time
	grant  atomic.Pointer[oauth.AccessGrant]
}

// Trusted returns a grant as it was less than grantTrusted ago, or nil if the cache has none.
// Use it only to admit a call, and read the newest state to refuse one or to change the grant.
func (c *cachingStore) Trusted(id string) *oauth.AccessGrant {
	kept, found := c.trusted.Get(id)
	if !found {
		return nil
	}
	age, grant := c.now().Sub(kept.readAt), kept.grant.Load()
	if grant == nil || age >= grantTrusted {
		return nil
	}
	return grant.Copy()
}

// Code returns the code with the id, or ErrNotFound.
func (c *cachingStore) Code(ctx context.Context, id string) (*oauth.AuthorizationCode, error) {
	found, err := c.Find(ctx, oauth.Selection{Code: id})
	if err != nil || len(found.Codes) == 0 {
		return nil, cmp.Or(err, oauth.ErrNotFound)
	}
	return found.Codes[0], nil
}

// Grant returns the grant with the id, or ErrNotFound. Trusted then returns it, too.
func (c *cachingStore) Grant(ctx context.Context, id string) (*oauth.AccessGrant, error) {
	place := &trustedGrant{readAt: c.now()}
	c.trusted.Add(id, place)
	found, err := c.Find(ctx, oauth.Selection{Grant: id})
	if err != nil || len(found.Grants) == 0 {
		return nil, cmp.Or(err, oauth.ErrNotFound)
	}
	place.grant.Store(found.Grants[0].Copy())
	return found.Grants[0], nil
}

func (c *cachingStore) forget(grants ...string) {
	for _, id := range grants {
		c.trusted.Remove(id)
	}
}

// UpdateGrant changes the newest state of a grant, or returns ErrNotFound. The store may begin with
// known, an earlier state that the caller has read.
func (c *cachingStore) UpdateGrant(ctx context.Context, known *oauth.AccessGrant,
	change func(*oauth.AccessGrant) error) error {
	defer c.forget(known.ID())
	of := oauth.Selection{Grant: known.ID(), Known: &oauth.Authorizations{Grants: []*oauth.AccessGrant{known}}}
	return c.Change(ctx, of, func(found *oauth.Authorizations) error {
		if len(found.Grants) == 0 {
			return oauth.ErrNotFound
		}
		return change(found.Grants[0])
	})
}

// RecordUse stores the last uses of grants, by id.
func (c *cachingStore) RecordUse(ctx context.Context, uses map[string]oauth.Use) error {
	defer c.forget(slices.Collect(maps.Keys(uses))...)
	if recorder, records := c.Store.(oauth.UseRecorder); records {
		return recorder.RecordUse(ctx, uses)
	}
	for id, use := range uses {
		err := c.Change(ctx, oauth.Selection{Grant: id}, func(found *oauth.Authorizations) error {
			for _, grant := range found.Grants {
				grant.RecordUse(use)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// UpdateAuthorizationsOf changes the issued codes and the active grants of a host token.
func (c *cachingStore) UpdateAuthorizationsOf(ctx context.Context, host oauth.Fingerprint,
	change func(oauth.Authorizations) error) error {
	var changed []string
	defer func() { c.forget(changed...) }()
	return c.Change(ctx, oauth.Selection{Host: host[:]}, func(found *oauth.Authorizations) error {
		for _, grant := range found.Grants {
			changed = append(changed, grant.ID())
		}
		return change(*found)
	})
}

// awaitOthers waits until no replica trusts a grant as it was before a number of changes, so that
// what is then confirmed is true everywhere.
func (c *cachingStore) awaitOthers(ctx context.Context, changed int) {
	shared, isShared := c.Store.(oauth.SharedStore)
	if changed == 0 || !isShared || !shared.SharedByReplicas() {
		return
	}
	select {
	case <-time.After(grantTrusted):
	case <-ctx.Done():
	}
}

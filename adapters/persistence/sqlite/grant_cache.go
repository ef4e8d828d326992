package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// maxGrants is the number of grants that the cache holds.
const maxGrants = 4096

// GrantCache caches the grants that lookups have read, until any process commits to the file, this
// one included. Each lookup asks SQLite for the version of the file after it has begun, so that it
// never returns a grant older than the last commit before the lookup.
type GrantCache struct {
	to connector

	mu      sync.Mutex
	asking  *connection // which does not write, so that every commit changes its version of the file
	version int64       // of the file, in which the grants are current
	emptied int         // how often
	closed  bool
	grants  *simplelru.LRU[string, any]
}

func newGrantCache(to connector) *GrantCache {
	grants, _ := simplelru.NewLRU[string, any](maxGrants, nil) // fails only for a size below one
	return &GrantCache{to: to, grants: grants}
}

// Lookup returns the cached grant, or the one that read returns. Callers share it and must not
// change it.
func (c *GrantCache) Lookup(id string, read func() (any, error)) (any, error) {
	entry, emptied, err := c.cached(id)
	if err == nil && entry != nil {
		return entry, nil
	}
	entry, readErr := read() // reports the cause of err
	if err == nil && readErr == nil {
		c.keep(id, entry, emptied)
	}
	return entry, readErr
}

// cached returns the cached grant, or nil and how often the cache had been emptied.
func (c *GrantCache) cached(id string) (entry any, emptied int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	version, err := c.ask()
	if err != nil {
		return nil, 0, errors.Join(err, c.disconnect())
	}
	if version != c.version {
		c.empty()
		c.version = version
	}
	entry, _ = c.grants.Get(id)
	return entry, c.emptied, nil
}

// keep adds a grant that was read after the cache was last emptied. Commits since then can only
// have made the grant newer.
func (c *GrantCache) keep(id string, entry any, emptied int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.emptied == emptied && !c.grants.Contains(id) {
		c.grants.Add(id, entry)
	}
}

func (c *GrantCache) empty() {
	c.grants.Purge()
	c.emptied++
}

// dataVersion is a number that changes for a connection when another one commits.
const dataVersion = "PRAGMA data_version"

// ask returns the version of the file that the path names now.
func (c *GrantCache) ask() (int64, error) {
	if c.asking != nil && c.asking.ResetSession(context.Background()) != nil { // the file was replaced
		if err := c.disconnect(); err != nil {
			return 0, err
		}
	}
	if c.asking == nil {
		if err := c.connect(); err != nil {
			return 0, err
		}
	}
	rows, err := c.asking.QueryContext(context.Background(), dataVersion, nil)
	if err != nil {
		return 0, err
	}
	version := make([]driver.Value, 1)
	if err := errors.Join(rows.Next(version), rows.Close()); err != nil {
		return 0, err
	}
	return version[0].(int64), nil
}

// connectLimit is short because requests wait for the connection; without it they read the file.
const connectLimit = 200 * time.Millisecond

// connect empties the cache, because versions of two connections cannot be compared.
func (c *GrantCache) connect() error {
	if c.closed {
		return driver.ErrBadConn
	}
	c.empty()
	ctx, cancel := context.WithTimeout(context.Background(), connectLimit)
	defer cancel()
	opened, err := c.to.Connect(ctx)
	if err == nil {
		c.asking = opened.(*connection)
	}
	return err
}

func (c *GrantCache) disconnect() error {
	former := c.asking
	if c.asking = nil; former == nil {
		return nil
	}
	return former.Close()
}

// Close closes the connection to the file.
func (c *GrantCache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.disconnect()
}

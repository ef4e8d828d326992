package sqlite

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// maxGrants is the number of grants that the cache holds.
const maxGrants = 4096

// CacheEntry is a grant, as a lookup returns it. Callers share it and must not change it.
type CacheEntry interface {
	GrantID() string
}

// GrantCache caches the grants that lookups have read. A commit of this process replaces the
// changed grants; a commit of another process empties the cache. Each lookup compares the
// version of the file after it has begun, so that it never returns a grant older than the last
// commit before the lookup.
type GrantCache struct {
	detector *changeDetector

	mu      sync.Mutex
	version Version // of the file, in which the grants are current
	grants  *simplelru.LRU[string, CacheEntry]
	writing bool
	before  Version // of the file, when the current transaction of this process began
}

func newGrantCache(to connector) *GrantCache {
	grants, _ := simplelru.NewLRU[string, CacheEntry](maxGrants, nil) // fails only for a size below one
	return &GrantCache{detector: &changeDetector{to: to}, grants: grants}
}

// Version returns the version of the file, which is at most versionTrusted old when the file was
// replaced meanwhile.
func (c *GrantCache) Version() (Version, error) { return c.detector.recentVersion() }

// Lookup returns the cached grant, or the one that read returns.
func (c *GrantCache) Lookup(id string, read func() (CacheEntry, error)) (CacheEntry, error) {
	now, err := c.detector.recentVersion()
	if err != nil { // read reports the cause
		return read()
	}
	if entry, found := c.cached(now, id); found {
		return entry, nil
	}
	entry, err := read()
	if err == nil {
		c.keep(now, entry)
	}
	return entry, err
}

func (c *GrantCache) cached(now Version, id string) (entry CacheEntry, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version != now && !c.isStillCurrent() {
		return nil, false
	}
	return c.grants.Get(id)
}

// isStillCurrent reads the version again for a lookup that began before the last commit: grants of
// after that commit may answer it.
func (c *GrantCache) isStillCurrent() bool {
	now, err := c.detector.currentVersion()
	if err != nil {
		return false
	}
	if c.version != now && !c.writing { // while this process writes, the commit may be its own: settle keeps more
		c.reset(now)
		return false
	}
	return c.version == now
}

// keep adds a grant that was read after the file had the given version. Commits since then can only
// have made the grant newer.
func (c *GrantCache) keep(since Version, entry CacheEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version == since && !c.grants.Contains(entry.GrantID()) {
		c.grants.Add(entry.GrantID(), entry)
	}
}

// begin is called when this process has taken the write lock, so that no other process commits
// before settle.
func (c *GrantCache) begin() {
	before, err := c.detector.currentVersion()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing, c.before = true, before
	if err != nil {
		c.before = Version{}
	}
}

// newest returns the grant to the current transaction, unless that transaction has changed it.
func (c *GrantCache) newest(tx *Tx, id string) (entry CacheEntry, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if tx.unknown || c.before != c.version || tx.hasChanged(id) {
		return nil, false
	}
	return c.grants.Get(id)
}

// settle updates the cache after the transaction of this process has ended and before its callers
// are answered.
func (c *GrantCache) settle(tx *Tx) {
	after, err := c.detector.recentVersion()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = false
	switch {
	case err != nil:
		c.reset(Version{})
	case after == c.before && c.before == c.version: // nothing was written
	case !tx.wrote || tx.unknown || !after.follows(c.before): // another process may have committed since
		c.reset(after)
	default:
		if c.before != c.version {
			c.reset(after)
		}
		for _, grant := range tx.changed {
			c.replace(grant)
		}
		c.version = after
	}
}

// replace replaces a grant by what was written.
func (c *GrantCache) replace(grant changedGrant) {
	if grant.entry == nil {
		c.grants.Remove(grant.id)
		return
	}
	c.grants.Add(grant.id, grant.entry)
}

func (c *GrantCache) reset(now Version) {
	c.grants.Purge()
	c.version = now
}

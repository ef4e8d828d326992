package sqlite

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/pasteport/pasteport/domain/oauth"
)

// The cache holds at most 8192 entries, and mostly two of a grant: an access token and a refresh token.
const (
	maxGrants  = 1024
	maxSecrets = 8 // of one grant
)

// CacheEntry is a secret with its grant, as a lookup returns it. Callers share it and must not change it.
type CacheEntry interface {
	Secret() oauth.Digest
	GrantID() string
}

// GrantCache caches the entries that lookups have read. A commit of this process replaces the changed entries; a commit of another process empties
// the cache. Each lookup compares the version of the file after it has begun, so that it never returns an entry older than the last commit before
// the lookup.
type GrantCache struct {
	detector *changeDetector

	mu      sync.Mutex
	version Version // of the file, in which the entries are current
	entries map[oauth.Digest]CacheEntry
	grants  *simplelru.LRU[string, []CacheEntry] // the same entries
	writing bool
	before  Version // of the file, when the current transaction of this process began
}

func newGrantCache(to connector) *GrantCache {
	c := &GrantCache{detector: &changeDetector{to: to}, entries: map[oauth.Digest]CacheEntry{}}
	c.grants, _ = simplelru.NewLRU(maxGrants, c.evict) // fails only for a size below one
	return c
}

// Version returns the version of the file, which is at most versionTrusted old when the file was replaced meanwhile.
func (c *GrantCache) Version() (Version, error) { return c.detector.recentVersion() }

// Lookup returns the cached entry, or the one that read returns.
func (c *GrantCache) Lookup(secret oauth.Digest, read func() (CacheEntry, error)) (CacheEntry, error) {
	now, err := c.detector.recentVersion()
	if err != nil { // read reports the cause
		return read()
	}
	if entry, found := c.cached(now, secret); found {
		return entry, nil
	}
	entry, err := read()
	if err == nil {
		c.keep(now, entry)
	}
	return entry, err
}

func (c *GrantCache) cached(now Version, secret oauth.Digest) (entry CacheEntry, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version != now && !c.isStillCurrent() {
		return nil, false
	}
	return c.find(secret)
}

func (c *GrantCache) find(secret oauth.Digest) (entry CacheEntry, found bool) {
	if entry, found = c.entries[secret]; found {
		c.grants.Get(entry.GrantID()) // marks it as used
	}
	return entry, found
}

// isStillCurrent reads the version again for a lookup that began before the last commit: entries of after that commit may answer it.
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

// keep adds an entry that was read after the file had the given version. Commits since then can only have made the entry newer.
func (c *GrantCache) keep(since Version, entry CacheEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.entries[entry.Secret()]; known || c.version != since {
		return
	}
	c.add(entry)
}

func (c *GrantCache) add(entry CacheEntry) {
	others, _ := c.grants.Peek(entry.GrantID())
	if len(others) == maxSecrets {
		c.evict(entry.GrantID(), others[:1])
		others = others[1:]
	}
	c.grants.Add(entry.GrantID(), append(others, entry))
	c.entries[entry.Secret()] = entry
}

// begin is called when this process has taken the write lock, so that no other process commits before settle.
func (c *GrantCache) begin() {
	before, err := c.detector.currentVersion()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing, c.before = true, before
	if err != nil {
		c.before = Version{}
	}
}

// newest returns the entry to the current transaction, unless that transaction has changed its grant.
func (c *GrantCache) newest(tx *Tx, secret oauth.Digest) (entry CacheEntry, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if tx.unknown || c.before != c.version {
		return nil, false
	}
	entry, found = c.find(secret)
	return entry, found && !tx.hasChanged(entry.GrantID())
}

// settle updates the cache after the transaction of this process has ended and before its callers are answered.
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

// replace replaces the entries of a grant by those that were written.
func (c *GrantCache) replace(grant changedGrant) {
	c.grants.Remove(grant.id)
	for _, entry := range grant.current {
		c.add(entry)
	}
}

func (c *GrantCache) reset(now Version) {
	c.grants.Purge()
	c.version = now
}

// evict is called by the LRU with the entries that it drops.
func (c *GrantCache) evict(_ string, entries []CacheEntry) {
	for _, entry := range entries {
		delete(c.entries, entry.Secret())
	}
}

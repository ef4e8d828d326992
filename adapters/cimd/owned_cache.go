package cimd

import (
	"container/list"
	"net/netip"
	"slices"
	"sync"
)

// maxOwners is the maximum number of owners of a document. When another one claims it, the owner
// with most documents is removed.
const maxOwners = 4

// ownedCache caches documents of owners. When it is full, it evicts the least recently used
// document of the owner with most documents, so that an owner with many documents evicts its own. A
// document with several owners counts for the owner with fewest documents.
type ownedCache[T any] struct {
	max     int
	byKey   map[string]*list.Element
	recent  *list.List     // of *owned[T], the most recently used first
	counts  map[string]int // documents of an owner
	evicted func()         // called for each evicted document that was fetched
}

type owned[T any] struct {
	key    string
	owners []string
	entry  *entry[T] // nil before the first fetch
}

func newOwnedCache[T any](size int, evicted func()) *ownedCache[T] {
	return &ownedCache[T]{
		max:     size,
		byKey:   map[string]*list.Element{},
		recent:  list.New(),
		counts:  map[string]int{},
		evicted: evicted,
	}
}

// find returns the document and marks it as used.
func (c *ownedCache[T]) find(key string) (found *owned[T], ok bool) {
	element, ok := c.byKey[key]
	if !ok {
		return nil, false
	}
	c.recent.MoveToFront(element)
	return element.Value.(*owned[T]), true
}

// renew replaces a document, and returns false if there is none.
func (c *ownedCache[T]) renew(key string, fetched *entry[T]) bool {
	found, ok := c.find(key)
	if ok {
		found.entry = fetched
	}
	return ok
}

// add adds a document that is not in the cache.
func (c *ownedCache[T]) add(key, owner string, e *entry[T]) {
	added := &owned[T]{key: key, entry: e}
	c.byKey[key] = c.recent.PushFront(added)
	c.own(added, owner)
	if c.recent.Len() > c.max {
		c.evict()
	}
}

// claim adds an owner to a document, and returns false if there is no such document.
func (c *ownedCache[T]) claim(key, owner string) bool {
	found, ok := c.find(key)
	if !ok {
		return false
	}
	if !slices.Contains(found.owners, owner) {
		c.own(found, owner)
	}
	return true
}

func (c *ownedCache[T]) own(d *owned[T], owner string) {
	d.owners = append(d.owners, owner)
	c.counts[owner]++
	if len(d.owners) > maxOwners {
		c.disown(d, slices.MaxFunc(d.owners, func(a, b string) int { return c.counts[a] - c.counts[b] }))
	}
}

func (c *ownedCache[T]) disown(d *owned[T], owner string) {
	d.owners = slices.DeleteFunc(d.owners, func(o string) bool { return o == owner })
	if c.counts[owner]--; c.counts[owner] == 0 {
		delete(c.counts, owner)
	}
}

// remove removes a document and returns it, nil if there is none.
func (c *ownedCache[T]) remove(key string) *entry[T] {
	element, ok := c.byKey[key]
	if !ok {
		return nil
	}
	removed := c.recent.Remove(element).(*owned[T])
	delete(c.byKey, key)
	for _, owner := range slices.Clone(removed.owners) {
		c.disown(removed, owner)
	}
	return removed.entry
}

// evict removes the document whose smallest owner has most documents, the least recently used of
// several.
func (c *ownedCache[T]) evict() {
	var worst *owned[T]
	most := 0
	for element := c.recent.Back(); element != nil; element = element.Prev() {
		d := element.Value.(*owned[T])
		if size := c.smallestOwner(d); size > most {
			worst, most = d, size
		}
	}
	if c.remove(worst.key) != nil {
		c.evicted()
	}
}

// smallestOwner returns the number of documents of the owner with fewest.
func (c *ownedCache[T]) smallestOwner(d *owned[T]) int {
	smallest := c.counts[d.owners[0]]
	for _, owner := range d.owners[1:] {
		smallest = min(smallest, c.counts[owner])
	}
	return smallest
}

// entries caches documents in two parts. Documents of clients in use are evicted only by other
// clients in use; their owners are the host tokens that approved them. The owners of the others are
// the networks that requested them, so that a network evicts its own documents.
type entries[T any] struct {
	mu            sync.Mutex
	inUse, others *ownedCache[T]
}

func newEntries[T any](inUse, others int, evicted func()) *entries[T] {
	return &entries[T]{inUse: newOwnedCache[T](inUse, evicted), others: newOwnedCache[T](others, evicted)}
}

// get returns the document, nil if there is none. It is known if it was fetched before or belongs
// to a client in use.
func (e *entries[T]) get(key string) (found *entry[T], known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, part := range []*ownedCache[T]{e.inUse, e.others} {
		if document, ok := part.find(key); ok {
			return document.entry, true
		}
	}
	return nil, false
}

// add caches a document that was fetched for a requester in the network.
func (e *entries[T]) add(key string, fetched *entry[T], network netip.Prefix) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.inUse.renew(key, fetched) || e.others.renew(key, fetched) {
		return
	}
	e.others.add(key, network.String(), fetched)
}

// keep moves a document to the part for clients in use. It adds an empty entry there if the
// document was not fetched yet.
func (e *entries[T]) keep(key, owner string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.inUse.claim(key, owner) {
		return
	}
	known := e.others.remove(key)
	e.inUse.add(key, owner, known)
}

// addMissing adds a document unless there is one, and returns the one in the cache.
func (e *entries[T]) addMissing(key string, loaded *entry[T], network netip.Prefix) *entry[T] {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, part := range []*ownedCache[T]{e.inUse, e.others} {
		document, ok := part.find(key)
		if !ok {
			continue
		}
		if document.entry == nil {
			document.entry = loaded
		}
		return document.entry
	}
	e.others.add(key, network.String(), loaded)
	return loaded
}

// replace replaces a document, unless another version has replaced it before.
func (e *entries[T]) replace(key string, known, next *entry[T]) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, part := range []*ownedCache[T]{e.inUse, e.others} {
		if document, ok := part.find(key); ok && document.entry == known {
			document.entry = next
		}
	}
}

// forget removes a document. One of a client in use leaves an empty entry.
func (e *entries[T]) forget(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.inUse.renew(key, nil) {
		e.others.remove(key)
	}
}

// isInUse reports whether the document is one of a client in use.
func (e *entries[T]) isInUse(key string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.inUse.find(key)
	return ok
}

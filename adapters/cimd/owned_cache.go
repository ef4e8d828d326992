package cimd

import (
	"container/list"
	"slices"
)

// maxOwners bounds the owners of a document. When one more claims it, the owner with most documents gives it up.
const maxOwners = 4

// ownedCache keeps documents of owners. When it is full, the owner with most documents loses its least recently used one, so that an owner with
// many documents evicts its own. A document with several owners stays as long as one of them has few documents.
type ownedCache[T any] struct {
	max     int
	byKey   map[string]*list.Element
	recent  *list.List     // of *owned[T], the most recently used first
	counts  map[string]int // documents of an owner
	evicted func()         // called for each document that is evicted after it was fetched
}

type owned[T any] struct {
	key    string
	owners []string
	entry  *entry[T] // nil for one that is not fetched yet
}

func newOwnedCache[T any](size int, evicted func()) *ownedCache[T] {
	return &ownedCache[T]{max: size, byKey: map[string]*list.Element{}, recent: list.New(), counts: map[string]int{}, evicted: evicted}
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

// renew replaces a document, and reports false when there is none.
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
		c.makeRoom()
	}
}

// claim gives a document one more owner, and reports false when there is no such document.
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

// remove returns the document that it removes, nil when there is none.
func (c *ownedCache[T]) remove(key string) *entry[T] {
	element, ok := c.byKey[key]
	if !ok {
		return nil
	}
	gone := c.recent.Remove(element).(*owned[T])
	delete(c.byKey, key)
	for _, owner := range slices.Clone(gone.owners) {
		c.disown(gone, owner)
	}
	return gone.entry
}

// makeRoom evicts the document whose smallest owner is the largest, the least recently used of several.
func (c *ownedCache[T]) makeRoom() {
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

// smallestOwner returns how many documents the owner with fewest has.
func (c *ownedCache[T]) smallestOwner(d *owned[T]) int {
	smallest := c.counts[d.owners[0]]
	for _, owner := range d.owners[1:] {
		smallest = min(smallest, c.counts[owner])
	}
	return smallest
}

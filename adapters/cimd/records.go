package cimd

import (
	"net/netip"
	"slices"
	"sync"
)

// maxOwners is the maximum number of owners of a document. When another one claims it, the owner
// with most documents is removed.
const maxOwners = 4

// records caches documents by their URL. A document has owners: the host tokens that approved its
// client or, if the client is not in use, the network that requested it. A full cache evicts the
// least recently used document of the owner with the most documents, so that an owner with many
// documents evicts its own. If a document has several owners, the one with the fewest documents
// counts. Documents of clients in use are evicted only by each other.
type records[T any] struct {
	maxInUse, maxOthers int
	evicted             func() // called for each evicted document that was fetched

	mu     sync.Mutex
	byURL  map[string]*record[T]
	counts map[string]int // documents of an owner
	inUse  int
	uses   int // so far, of all documents
}

type record[T any] struct {
	entry   *entry[T] // nil before the first fetch or after forget; only a record in use can be without one
	owners  []string
	inUse   bool
	lastUse int
}

func newRecords[T any](maxInUse, maxOthers int, evicted func()) *records[T] {
	return &records[T]{
		maxInUse:  maxInUse,
		maxOthers: maxOthers,
		evicted:   evicted,
		byURL:     map[string]*record[T]{},
		counts:    map[string]int{},
	}
}

// get returns the document, nil if there is none, and whether it is one of a client in use.
func (r *records[T]) get(url string) (found *entry[T], inUse bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := r.find(url); d != nil {
		return d.entry, d.inUse
	}
	return nil, false
}

// set caches a document that was fetched for a requester in the network.
func (r *records[T]) set(url string, fetched *entry[T], network netip.Prefix) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := r.find(url); d != nil {
		d.entry = fetched
		return
	}
	r.add(url, network.String(), false, fetched)
}

// replace is like set, unless another version has replaced the known one before.
func (r *records[T]) replace(url string, known, next *entry[T], network netip.Prefix) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch d := r.find(url); {
	case d != nil && d.entry == known:
		d.entry = next
	case d == nil && known == nil:
		r.add(url, network.String(), false, next)
	}
}

// keep marks a document as one of a client in use. It adds an empty record if the document was not
// fetched yet.
func (r *records[T]) keep(url, owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch d := r.find(url); {
	case d == nil:
		r.add(url, owner, true, nil)
	case !d.inUse:
		r.remove(url)
		r.add(url, owner, true, d.entry)
	case !slices.Contains(d.owners, owner):
		r.own(d, owner)
	}
}

// forget removes a document. One of a client in use leaves an empty record.
func (r *records[T]) forget(url string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch d := r.byURL[url]; {
	case d == nil:
	case d.inUse:
		d.entry = nil
	default:
		r.remove(url)
	}
}

// find returns the record and marks it as used, nil if there is none.
func (r *records[T]) find(url string) *record[T] {
	d := r.byURL[url]
	if d != nil {
		r.uses++
		d.lastUse = r.uses
	}
	return d
}

func (r *records[T]) add(url, owner string, inUse bool, e *entry[T]) {
	d := &record[T]{entry: e, inUse: inUse}
	r.byURL[url] = d
	r.find(url)
	r.own(d, owner)
	if inUse {
		r.inUse++
	}
	if r.inUse > r.maxInUse || len(r.byURL)-r.inUse > r.maxOthers {
		r.evict(inUse)
	}
}

func (r *records[T]) own(d *record[T], owner string) {
	d.owners = append(d.owners, owner)
	r.counts[owner]++
	if len(d.owners) > maxOwners {
		r.disown(d, slices.MaxFunc(d.owners, func(a, b string) int { return r.counts[a] - r.counts[b] }))
	}
}

func (r *records[T]) disown(d *record[T], owner string) {
	d.owners = slices.DeleteFunc(d.owners, func(o string) bool { return o == owner })
	if r.counts[owner]--; r.counts[owner] == 0 {
		delete(r.counts, owner)
	}
}

func (r *records[T]) remove(url string) {
	d := r.byURL[url]
	delete(r.byURL, url)
	for _, owner := range slices.Clone(d.owners) {
		r.disown(d, owner)
	}
	if d.inUse {
		r.inUse--
	}
}

// evict removes the document with the highest fewestDocuments; among equals, the least recently
// used one.
func (r *records[T]) evict(inUse bool) {
	var worst *record[T]
	var at string
	most := 0
	for url, d := range r.byURL {
		if d.inUse != inUse {
			continue
		}
		if size := r.fewestDocuments(d); size > most || size == most && d.lastUse < worst.lastUse {
			worst, at, most = d, url, size
		}
	}
	if r.remove(at); worst.entry != nil {
		r.evicted()
	}
}

// fewestDocuments returns the smallest number of documents that an owner of d has.
func (r *records[T]) fewestDocuments(d *record[T]) int {
	smallest := r.counts[d.owners[0]]
	for _, owner := range d.owners[1:] {
		smallest = min(smallest, r.counts[owner])
	}
	return smallest
}

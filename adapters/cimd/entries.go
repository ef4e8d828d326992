package cimd

import (
	"container/list"
	"net/netip"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// entries keeps documents in two parts (C54). Only further clients in use evict the documents of clients in use. Of the others, the network
// that has caused most of them loses its least recently used one, so that strangers evict their own documents.
type entries[T any] struct {
	mu        sync.Mutex
	inUse     *simplelru.LRU[string, *entry[T]] // nil for one that is not fetched yet
	maxOthers int
	others    map[string]*list.Element
	recent    *list.List // of *owned[T], the most recently used first
	counts    map[netip.Prefix]int
	evicted   func() // called for each document that is evicted
}

// owned is a document that was fetched for a network.
type owned[T any] struct {
	key     string
	network netip.Prefix
	entry   *entry[T]
}

func newEntries[T any](inUse, others int, evicted func()) *entries[T] {
	e := &entries[T]{maxOthers: others, others: map[string]*list.Element{}, recent: list.New(), counts: map[netip.Prefix]int{}, evicted: evicted}
	e.inUse, _ = simplelru.NewLRU(inUse, func(_ string, forgotten *entry[T]) { // fails only for a size that is not positive
		if forgotten != nil {
			evicted()
		}
	})
	return e
}

// get returns the document, nil when there is none, and reports whether it is known: it was fetched, or belongs to a client in use.
func (e *entries[T]) get(key string) (found *entry[T], known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if found, known = e.inUse.Get(key); known {
		return found, true
	}
	element, known := e.others[key]
	if !known {
		return nil, false
	}
	e.recent.MoveToFront(element)
	return element.Value.(*owned[T]).entry, true
}

// add keeps a document that was fetched for a requester in the network.
func (e *entries[T]) add(key string, fetched *entry[T], network netip.Prefix) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.inUse.Contains(key) {
		e.inUse.Add(key, fetched)
		return
	}
	if element, found := e.others[key]; found {
		element.Value.(*owned[T]).entry = fetched
		e.recent.MoveToFront(element)
		return
	}
	e.others[key] = e.recent.PushFront(&owned[T]{key, network, fetched})
	e.counts[network]++
	if e.recent.Len() > e.maxOthers {
		e.makeRoom()
	}
}

// keep moves a document to the part for clients in use, or reserves its place there.
func (e *entries[T]) keep(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, kept := e.inUse.Get(key); kept {
		return
	}
	var known *entry[T]
	if element, found := e.others[key]; found {
		known = e.remove(element)
	}
	e.inUse.Add(key, known)
}

func (e *entries[T]) remove(element *list.Element) *entry[T] {
	gone := e.recent.Remove(element).(*owned[T])
	delete(e.others, gone.key)
	if e.counts[gone.network]--; e.counts[gone.network] == 0 {
		delete(e.counts, gone.network)
	}
	return gone.entry
}

func (e *entries[T]) makeRoom() {
	most := 0
	for _, count := range e.counts {
		most = max(most, count)
	}
	for element := e.recent.Back(); element != nil; element = element.Prev() {
		if e.counts[element.Value.(*owned[T]).network] == most {
			e.remove(element)
			e.evicted()
			return
		}
	}
}

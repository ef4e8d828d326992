package cimd

import (
	"net/netip"
	"sync"
)

// entries caches documents in two parts (C54). Documents of clients in use are evicted only by other clients in use; their owners are the host
// tokens that approved them. The owners of the others are the networks that requested them, so that a network evicts its own documents.
type entries[T any] struct {
	mu            sync.Mutex
	inUse, others *ownedCache[T]
}

func newEntries[T any](inUse, others int, evicted func()) *entries[T] {
	return &entries[T]{inUse: newOwnedCache[T](inUse, evicted), others: newOwnedCache[T](others, evicted)}
}

// get returns the document, nil if there is none. It is known if it was fetched before or belongs to a client in use.
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

// keep moves a document to the part for clients in use. It adds an empty entry there if the document was not fetched yet.
func (e *entries[T]) keep(key, owner string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.inUse.claim(key, owner) {
		return
	}
	known := e.others.remove(key)
	e.inUse.add(key, owner, known)
}

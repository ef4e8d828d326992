// Package cache makes the caches of the use cases and the adapters.
package cache

import lru "github.com/hashicorp/golang-lru/v2"

// LRU evicts what was used least recently. It is safe for concurrent use.
type LRU[K comparable, V any] = lru.Cache[K, V]

// New returns an empty cache of a size above zero.
func New[K comparable, V any](size int) *LRU[K, V] {
	empty, err := lru.New[K, V](size)
	if err != nil {
		panic(err) // the sizes are constants
	}
	return empty
}

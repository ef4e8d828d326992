// Package storespec is the contract of oauth.Store for everyone who writes one: call Contract in a Ginkgo container beside
// the adapter, and what the port promises is put to the test.
package storespec

import (
	. "github.com/onsi/ginkgo/v2"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Contract adds the specs of every promise to the caller's container. open returns an empty store, a fresh one for each spec,
// and leaves its end to DeferCleanup. A store that outlives its process also gives reopen, which closes the store and opens
// what it has kept.
func Contract(open func() oauth.Store, reopen ...func(oauth.Store) oauth.Store) {
	w := &world{}
	BeforeEach(func() { *w = newWorld(open()) })
	finding(w)
	adding(w)
	redeeming(w)
	updating(w)
	keeping(w)
	racing(w)
	listing(w)
	spending(w)
	forgetting(w)
	for _, open := range reopen {
		reopening(w, open)
	}
}

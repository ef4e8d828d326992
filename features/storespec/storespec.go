// Package storespec tests an implementation of oauth.Store. Call Contract in a Ginkgo container of
// your package; add RecordingUses if the store is an oauth.UseRecorder, WatchingEnds if it is an
// oauth.EndWatcher, and Listing if it is an oauth.AuthorizationLister.
package storespec

import (
	. "github.com/onsi/ginkgo/v2"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Contract adds the specs of oauth.Store to the current container. open returns a new, empty store
// for each spec and registers its cleanup with DeferCleanup. For a store that outlives its process,
// pass reopen too: it closes the store and opens it again with the same content.
func Contract(open func() oauth.Store, reopen ...func(oauth.Store) oauth.Store) {
	apart(func() {
		w := &world{}
		BeforeEach(func() { *w = newWorld(open()) })
		lookups(w)
		newCodes(w)
		redemptions(w)
		updates(w)
		persistence(w)
		concurrency(w)
		authorizations(w)
		assertions(w)
		garbageCollection(w)
		for _, open := range reopen {
			reopening(w, open)
		}
	})
}

// apart adds specs in a container of their own. Otherwise their store would be opened for all specs
// of the caller's container.
func apart(specs func()) { Context("", specs) }

package boltstore_test

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/storespec"
	"github.com/pasteport/pasteport/features/storespec/boltstore"
	"github.com/pasteport/pasteport/features/suite"
)

func TestBoltStore(t *testing.T) { suite.Run(t, "A store on bbolt") }

var _ = Describe("A store on bbolt", func() {
	var file string
	open := func() oauth.Store {
		store, err := boltstore.Open(file)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(store.Close)
		return store
	}
	storespec.Contract(func() oauth.Store {
		file = filepath.Join(GinkgoT().TempDir(), "oauth.bolt")
		return open()
	}, func(former oauth.Store) oauth.Store {
		Expect(former.(*boltstore.Store).Close()).To(Succeed())
		return open()
	})
})

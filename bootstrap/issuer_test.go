package bootstrap_test

import (
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("An issuer that changes over the same store", Label("F9"), func() {
	const before, after = "https://old.example", "https://new.example"
	var store *persistence.Store
	var site *host
	BeforeEach(func() {
		var err error
		store, err = persistence.OpenSQLite(filepath.Join(GinkgoT().TempDir(), "oauth.db"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(store.Close)
		site = openHost(oauth.Config{Issuer: before}, store, nil)
	})
	start := func(issuer string) error {
		authz, err := bootstrap.NewOAuthServer(oauth.Config{
			Issuer:       issuer,
			VerifyBearer: func(string) bool { return true },
		}, store)
		if err == nil {
			authz.Close()
		}
		return err
	}

	It("is refused with both while connections of the old one exist, and then accepted", func(ctx SpecContext) {
		Expect(start(after)).To(Succeed())
		site.code()
		Expect(start(after)).To(MatchError(And(ContainSubstring(before), ContainSubstring(after),
			ContainSubstring("set issuer back"), ContainSubstring("pasteport grants end --all"))))
		Expect(start(before)).To(Succeed())
		Expect(start(before + "/auth")).To(MatchError(ContainSubstring(before)))
		Expect(site.authz.EndGrantsOf(ctx, "host-token")).To(Equal(1))
		Expect(start(after)).To(Succeed())
	})

	It("starts if it still serves the MCP servers of the old issuer", func() {
		site.code()
		openHost(oauth.Config{
			Issuer:   after,
			Resource: before + "/mcp",
		}, store, nil)
	})

	It("is no change where a server on a host of its own was removed", func() {
		openHost(oauth.Config{
			Issuer:   after,
			Resource: "https://first.example/mcp",
		}, store, nil).code()
		openHost(oauth.Config{
			Issuer:   after,
			Resource: "https://second.example/mcp",
		}, store, nil)
	})
})

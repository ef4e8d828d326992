package persistence

import (
	"net/url"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/engines"
	"github.com/pasteport/pasteport/features/storespec"
)

var _ = Describe("A primary and a read-only replica of MariaDB", Label("engines", "MariaDB", "N14"), func() {
	It("are not confused, also after a restart of the primary", func(ctx SpecContext) {
		secret := filepath.Join(GinkgoT().TempDir(), "secret")
		start := func() (server *engines.Server, host string) {
			server, err := engines.MariaDB(ctx)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(server.Close)
			for _, statement := range []string{
				"CREATE DATABASE app",
				"CREATE USER app@'%' IDENTIFIED BY 'p'", "GRANT ALL ON app.* TO app@'%'",
				"CREATE USER app@localhost IDENTIFIED BY 'p'", "GRANT ALL ON app.* TO app@localhost",
			} {
				Expect(server.Exec(ctx, statement)).To(Succeed())
			}
			address, err := server.Database(ctx)
			Expect(err).NotTo(HaveOccurred())
			parsed, err := url.Parse(address)
			Expect(err).NotTo(HaveOccurred())
			store, err := OpenServer("mysql://app:p@"+parsed.Host+"/app", ServerOptions{SecretFile: secret})
			Expect(err).NotTo(HaveOccurred())
			Expect(store.Close()).To(Succeed())
			return server, parsed.Host
		}
		primary, host := start()
		replica, other := start()
		Expect(replica.Exec(ctx, "SET GLOBAL read_only = 1")).To(Succeed())
		store, err := OpenServer("mysql://app:p@"+other+","+host+"/app", ServerOptions{SecretFile: secret})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(store.Close)
		write := func(digest byte) error {
			return store.UseOnce(ctx, oauth.Digest{digest}, time.Now().Add(time.Hour))
		}
		Expect(write(1)).To(Succeed())

		Expect(primary.Stop()).To(Succeed())
		_, err = storespec.On(store).Grant(ctx, "g")
		Expect(err).To(MatchError(oauth.ErrUnavailable), "the replica may not have the last revocation")
		Expect(primary.Start(ctx)).To(Succeed())
		Eventually(ctx, func() error { return write(2) }).WithTimeout(time.Minute).Should(Succeed())
	}, NodeTimeout(2*time.Minute))
})

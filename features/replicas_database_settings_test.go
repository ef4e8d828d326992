package features_test

import (
	"context"
	"net/http"
	"net/url"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/engines"
)

// ownMariaDB returns the address of a database on a MariaDB server of its own with the setting.
func ownMariaDB(ctx context.Context, setting string) string {
	GinkgoHelper()
	server, err := engines.MariaDB(ctx, setting)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Close)
	address, err := server.Database(ctx)
	Expect(err).NotTo(HaveOccurred())
	return address
}

// databaseWith adds options to the address of a database on a shared server.
func databaseWith(engine, options string) string {
	GinkgoHelper()
	address, err := url.Parse(databaseServers[engine].database())
	Expect(err).NotTo(HaveOccurred())
	address.RawQuery += "&" + options
	return address.String()
}

var _ = Describe("Sessions of a database server that begin with other settings", Label("engines", "I22", "E6"), func() {
	DescribeTable("get ours, so that every replica refuses what one of them has revoked:",
		func(ctx SpecContext, open func(context.Context) string) {
			world := newWorld()
			world.Database = open(ctx)
			world.start("127.0.0.1:0")
			DeferCleanup(func() { world.Stop() })
			replica, client := world.Replica(), world.NewClient()
			for range 4 { // with the wrong settings, each connection of a replica has a view of its own
				tokens := client.Connect(ctx)
				Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
				Expect(replica.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
				Expect(Post(ctx, replica.Address+"/oauth/revoke", url.Values{"token": {tokens.Refresh}}).StatusCode).
					To(Equal(http.StatusOK))
				Eventually(func() int { return world.Call(ctx, tokens.Access).StatusCode }).WithContext(ctx).
					WithTimeout(patience).Should(Equal(http.StatusUnauthorized))
				for _, answer := range atOnce(8, func() Response { return world.Call(ctx, tokens.Access) }) {
					Expect(answer).To(BeChallenged(world, "invalid_token"))
				}
				Expect(replica.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusUnauthorized))
			}
			client.Connect(ctx)
			ended := Run(ctx, append([]string{"grants", "end", "--all", "--yes"}, world.Kept()...)...)
			Expect(ended.Code).To(BeZero(), ended.Err)
			Expect(world.Grants(ctx)).To(BeEmpty())
			_, checked := world.CheckStore(ctx)
			Expect(checked.Code).To(BeZero(), checked.Out)
		},
		Entry("MariaDB with autocommit=0", func(ctx context.Context) string {
			return ownMariaDB(ctx, "autocommit=0")
		}, NodeTimeout(2*time.Minute)),
		Entry("MariaDB with completion_type=CHAIN", func(ctx context.Context) string {
			return ownMariaDB(ctx, "completion-type=CHAIN")
		}, NodeTimeout(2*time.Minute)),
		Entry("an address of MariaDB with both, in any spelling", func(context.Context) string {
			return databaseWith("MariaDB", "autocommit=0&AutoCommit=0&completion_type=2&tx_read_only=1")
		}),
		Entry("an address of PostgreSQL", func(context.Context) string {
			return databaseWith("PostgreSQL",
				"default_transaction_isolation=serializable&default_transaction_read_only=on")
		}),
	)
})

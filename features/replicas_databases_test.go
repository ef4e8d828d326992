package features_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/features/engines"
)

var _ = Describe("A database server that fails", Label("engines", "long", "N14", "D30", "E10", "G11"), func() {
	for name := range databaseServers {
		Context("of "+name, func() {
			var database *engines.Server
			var world *World
			var stake *Stake
			BeforeEach(func(ctx SpecContext) {
				var err error
				database, err = engines.Own(ctx, name)
				Expect(err).NotTo(HaveOccurred())
				DeferCleanup(func() error { return database.Close() })
				world = newWorld()
				world.Database, err = database.Database(ctx)
				Expect(err).NotTo(HaveOccurred())
				world.start("127.0.0.1:0")
				DeferCleanup(func() { world.Stop() })
				stake = NewStake(ctx, world.NewClient())
			}, NodeTimeout(5*time.Minute))
			expectOutage := func(ctx SpecContext) {
				GinkgoHelper()
				answers := stake.Try(ctx)
				Expect(answers).To(BeAnOutage())
				Expect(answers).To(HaveKeyWithValue("call", BeUnchecked()))
			}

			It("by a restart loses nothing, and requests get 503 meanwhile", func(ctx SpecContext) {
				Expect(database.Stop()).To(Succeed())
				expectOutage(ctx)
				Expect(database.Start(ctx)).To(Succeed())
				stake.ExpectUntouched(ctx)
			}, NodeTimeout(5*time.Minute))

			// The server may carry out what it was asked before it was resumed, although the
			// request got 503.
			It("by a pause loses no token, and requests get 503 meanwhile", Label("I19"), func(ctx SpecContext) {
				Expect(database.Pause()).To(Succeed())
				DeferCleanup(func() error { return database.Resume() })
				expectOutage(ctx)
				Expect(database.Resume()).To(Succeed())

				Expect(world.Call(ctx, stake.Tokens.Access).StatusCode).To(Equal(http.StatusOK))
				next := stake.Token(ctx, stake.Refresh(stake.Tokens.Refresh))
				Expect(next.StatusCode).To(Equal(http.StatusOK), next.Text)
				Expect(world.Call(ctx, next.Tokens().Access).StatusCode).To(Equal(http.StatusOK))
				Expect(stake.Token(ctx, stake.Exchange(stake.Code))).To(BeGrantedOrRefused())
				Expect(stake.Revoke(ctx, stake.Leave.Refresh).StatusCode).To(Equal(http.StatusOK))
				Expect(world.Call(ctx, stake.Leave.Access)).To(BeChallenged(world, "invalid_token"))
				Expect(world.Call(ctx, stake.Connect(ctx).Access).StatusCode).To(Equal(http.StatusOK))
			}, NodeTimeout(5*time.Minute))
		})
	}
})

// ownMariaDB returns the address of a database on a MariaDB server of its own with the setting.
func ownMariaDB(ctx context.Context, setting string) string {
	GinkgoHelper()
	server := must(engines.MariaDB(ctx, setting))
	DeferCleanup(server.Close)
	return must(server.Database(ctx))
}

// databaseWith adds options to the address of a database on a shared server.
func databaseWith(engine, options string) string {
	GinkgoHelper()
	address := must(url.Parse(databaseServers[engine].database()))
	address.RawQuery += "&" + options
	return address.String()
}

var _ = Describe("Sessions of a database server that begin with other settings", Label("engines", "I22", "E6"), func() {
	DescribeTable("get ours, so that every replica refuses what one of them has revoked:",
		func(ctx SpecContext, open func(context.Context) string) {
			world := WorldOn(open(ctx))
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

var _ = Describe("Sharing one server secret on a database server", Label("J2", "engines"), func() {
	for engine := range databaseServers {
		Context("of "+engine, func() {
			var world *World
			BeforeEach(func() {
				world = WorldOn(databaseServers[engine].database())
			})

			// another starts a replica with this secret in its folder, or without one.
			another := func(secret string) error {
				GinkgoHelper()
				config := service.Config{DataDir: GinkgoT().TempDir(), Development: true, EditorToken: world.Token}
				config.Issuer, config.Database.URL = world.Issuer, world.Database
				if secret != "" {
					config.Database.SecretFile = filepath.Join(config.DataDir, "mounted")
					Expect(os.WriteFile(config.Database.SecretFile, []byte(secret), 0o600)).To(Succeed())
				}
				service, err := service.Open(context.Background(), config)
				if err == nil {
					Expect(service.Close()).To(Succeed())
				}
				return err
			}

			It("starts a replica with the same secret", func() {
				Expect(another(serverSecret(world))).To(Succeed())
			})

			It("refuses a replica with another secret, and names the remedy", func(ctx SpecContext) {
				refused := another(strings.Repeat("o", 32))
				Expect(refused).To(MatchError(And(ContainSubstring("another server secret"),
					ContainSubstring("copy the file of server-secret from another replica"))))
				Expect(refused.Error()).NotTo(ContainSubstring("ooo"))
				Expect(world.Call(ctx, world.NewClient().Connect(ctx).Access).StatusCode).To(Equal(http.StatusOK))
			})

			It("refuses a replica without a secret, instead of generating one", func() {
				Expect(another("")).To(MatchError(ContainSubstring("copy it from another replica")))
			})

			It("switches to a new secret when a replica starts with both, and not back to the old one",
				func(ctx SpecContext) {
					before := serverSecret(world)
					world.RotateKeys(ctx)
					Expect(another(serverSecret(world))).To(Succeed())
					Expect(another(before)).To(MatchError(ContainSubstring("another server secret")))
				})

			It("keeps all grants while only some replicas have the new secret",
				Label("J6", "D30"), func(ctx SpecContext) {
					late, client := world.NewReplica(), world.NewClient()
					token := client.Connect(ctx).Refresh
					refresh := func(at *World) Response {
						return Post(ctx, at.Issuer+"/oauth/token", client.Refresh(token))
					}
					before := serverSecret(world)
					world.RotateKeys(ctx)
					Eventually(another).WithArguments(before).WithTimeout(patience).
						Should(MatchError(ContainSubstring("another server secret")))
					token = refresh(world).Tokens().Refresh
					Eventually(func() int { return refresh(late).StatusCode }).WithContext(ctx).WithTimeout(patience).
						Should(Equal(http.StatusServiceUnavailable))
					late.keepSecrets(serverSecret(world))
					answer := refresh(late)
					Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
				})

			It("starts over when the operator declares the old secret lost", Label("J6"), func(ctx SpecContext) {
				client := world.NewClient()
				tokens := client.Connect(ctx)
				Expect(os.Remove(filepath.Join(world.Dir, "oauth.db.secret"))).To(Succeed())
				world.RotateKeys(ctx, "--forget-old")
				world.Restart()
				Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
				client.Connect(ctx)
			})
		})
	}
})

var _ = Describe("Running out of connections to the database", Label("D30", "G11", "A33", "engines"), func() {
	for engine := range databaseServers {
		It("responds with 503 until a connection is free again, on "+engine, func(ctx SpecContext) {
			world := WorldOn(databaseServers[engine].database(),
				func(config *service.Config) { config.Database.Connections = 2 })
			client := world.NewClient()
			tokens := client.Connect(ctx)
			unlock := world.LockGrants(ctx)
			stuck := atOnce(2, func() Response { return client.Token(ctx, client.Refresh(tokens.Refresh)) })
			Expect(stuck).To(HaveEach(HaveField("StatusCode", http.StatusServiceUnavailable)))
			answers := together(map[string]func() Response{
				"a refresh": func() Response { return client.Token(ctx, client.Refresh(tokens.Refresh)) },
				"another":   func() Response { return client.Token(ctx, client.Refresh(tokens.Refresh)) },
				"a third":   func() Response { return client.Token(ctx, client.Refresh(tokens.Refresh)) },
				"a call":    func() Response { return world.Call(ctx, tokens.Access) },
			})
			for what, answer := range answers {
				Expect(answer.StatusCode).
					To(Or(Equal(http.StatusServiceUnavailable), And(Equal(http.StatusOK), Satisfy(func(int) bool {
						return what == "a call"
					}))), what)
			}
			unlock()
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
		})
	}
})

var _ = Describe("Approving right after the start", Label("D30", "I22", "engines"), func() {
	for engine := range databaseServers {
		It("issues 64 people their codes at once over four connections to "+engine, func(ctx SpecContext) {
			world := WorldOn(databaseServers[engine].database(),
				func(config *service.Config) { config.Database.Connections = 4 })
			client, approvals := world.NewClient(), map[int]func() Response{}
			for i := range 64 {
				page, token := client.Consent(ctx), world.TokenFor(ctx, "ada"+strconv.Itoa(i), demosite.Editor)
				approvals[i] = func() Response { return page.Approve(ctx, token) }
			}
			world.Restart()
			Expect(together(approvals)).To(HaveEach(HaveField("StatusCode", http.StatusSeeOther)))
		})
	}
})

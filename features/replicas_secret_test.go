package features_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
)

var _ = Describe("Sharing one server secret on a database server", Label("J2", "engines"), func() {
	for engine := range databaseServers {
		Context("of "+engine, func() {
			var world *World
			BeforeEach(func() {
				world = newWorld()
				world.Database = databaseServers[engine].database()
				world.start("127.0.0.1:0")
				DeferCleanup(func() { world.Stop() })
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
			world := newWorld(func(config *service.Config) { config.Database.Connections = 2 })
			world.Database = databaseServers[engine].database()
			world.start("127.0.0.1:0")
			DeferCleanup(func() { world.Stop() })
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
			world := newWorld(func(config *service.Config) { config.Database.Connections = 4 })
			world.Database = databaseServers[engine].database()
			world.start("127.0.0.1:0")
			DeferCleanup(func() { world.Stop() })
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

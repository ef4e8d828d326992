package features_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// RotateKeys replaces the server secret beside the running service.
func (w *World) RotateKeys(ctx context.Context, flags ...string) {
	GinkgoHelper()
	rotated := Run(ctx, slices.Concat([]string{"keys", "rotate"}, w.Kept(), flags)...)
	Expect(rotated.Code).To(BeZero(), rotated.Err)
}

var _ = Describe("Replacing the server secret beside a running service", Label("J2", "stores"), func() {
	var world *World
	var client *Client
	BeforeEach(func() {
		site := NewTokenSite(`{"roles":["editor"]}`) // without a subject; identified by the fingerprint
		world = NewWorld(func(config *service.Config) {
			config.Verification, config.RecheckEvery = overHTTP.configure(site.site.URL("/token")), time.Minute
		})
		client = world.NewClient()
	})

	DescribeTable("keeps valid", func(ctx SpecContext, before func(SpecContext) func(SpecContext)) {
		after := before(ctx)
		world.RotateKeys(ctx)
		after(ctx)
	},
		Entry("a consent page that a person has open", Label("B4"), func(ctx SpecContext) func(SpecContext) {
			page := client.Consent(ctx)
			return func(ctx SpecContext) {
				Expect(page.Approve(ctx, world.Token).StatusCode).To(Equal(http.StatusSeeOther))
			}
		}),
		Entry("a code", func(ctx SpecContext) func(SpecContext) {
			code := client.Authorize(ctx)
			return func(ctx SpecContext) {
				Expect(client.Token(ctx, client.Exchange(code)).StatusCode).To(Equal(http.StatusOK))
			}
		}),
		Entry("refresh tokens of all generations, also after a lost response",
			Label("J5", "J9"), func(ctx SpecContext) func(SpecContext) {
				first := client.Connect(ctx)
				second := client.Token(ctx, client.Refresh(first.Refresh)).Tokens()
				return func(ctx SpecContext) {
					Expect(client.Token(ctx, client.Refresh(first.Refresh)).Tokens().Refresh).To(Equal(second.Refresh))
					third := client.Token(ctx, client.Refresh(second.Refresh)).Tokens()
					world.RotateKeys(ctx)
					Expect(client.Token(ctx, client.Refresh(third.Refresh)).StatusCode).To(Equal(http.StatusOK))
				}
			}),
		Entry("an access token that is rechecked with the site during use",
			Label("J8"), func(ctx SpecContext) func(SpecContext) {
				tokens := client.Connect(ctx, set("scope", "mcp"))
				return func(ctx SpecContext) {
					world.Clock.Advance(time.Minute)
					Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
				}
			}),
		Entry("revocation by the site", Label("J10"), func(ctx SpecContext) func(SpecContext) {
			tokens := client.Connect(ctx)
			return func(ctx SpecContext) {
				later := client.Connect(ctx)
				Expect(world.EndGrantsOf(ctx, world.Token)).To(Equal(2))
				for _, ended := range []Tokens{tokens, later} {
					Expect(world.Call(ctx, ended.Access)).To(BeChallenged(world, "invalid_token"))
				}
			}
		}),
		Entry("the connections page, with the earlier connection last", func(ctx SpecContext) func(SpecContext) {
			client.Connect(ctx)
			open := world.Connections(ctx, world.Token)
			return func(ctx SpecContext) {
				later := client.Connect(ctx)
				page := world.Connections(ctx, world.Token)
				Expect(page.grants()).To(HaveLen(2))
				Expect(page.grants()[1]).To(Equal(open.grants()[0]))
				Expect(open.End(ctx, "").grants()).To(BeEmpty(), "earlier connections")
				Expect(world.Call(ctx, later.Access).StatusCode).To(Equal(http.StatusOK))
			}
		}),
	)

	It("continues after a restart", func(ctx SpecContext) {
		tokens := client.Connect(ctx)
		world.RotateKeys(ctx)
		world.Restart()
		Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
	})

	It("needs the new secret only for data sealed since", func(ctx SpecContext) {
		world.RotateKeys(ctx)
		tokens, page := client.Connect(ctx), client.Consent(ctx)
		world.RotateKeys(ctx, "--forget-old=1h")
		Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
		Expect(page.Approve(ctx, world.Token).StatusCode).To(Equal(http.StatusSeeOther))
	})

	It("knows no token that was issued under a forgotten secret", Label("J6", "H2"), func(ctx SpecContext) {
		tokens, page := client.Connect(ctx), client.Consent(ctx)
		world.RotateKeys(ctx, "--forget-old")
		Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
		Expect(page.Approve(ctx, world.Token).StatusCode).To(Equal(http.StatusBadRequest))
		Expect(world.Call(ctx, tokens.Access)).To(BeChallenged(world, "invalid_token"))
		Expect(client.Connect(ctx).Access).NotTo(BeEmpty())
	})

	It("says who has to connect again, and how to end what is left", Label("J10"), func(ctx SpecContext) {
		tokens := client.Connect(ctx, set("scope", "mcp"))
		Expect(Run(ctx, append([]string{"keys", "rotate"}, world.Kept()...)...).Out).
			NotTo(ContainSubstring("forgotten"))
		forgotten := Run(ctx, append([]string{"keys", "rotate", "--forget-old"}, world.Kept()...)...)
		Expect(forgotten.Out).To(ContainSubstring("apps that connected under a forgotten secret have to connect again"))
		Expect(world.Connections(ctx, world.Token).grants()).To(BeEmpty())
		Expect(world.EndGrantsOf(ctx, world.Token)).To(BeZero())
		Expect(world.Call(ctx, tokens.Access)).To(BeChallenged(world, "invalid_token"))
		Expect(forgotten.Out).To(ContainSubstring(`"pasteport grants end --all"`))
		Expect(RunTyping(ctx, "y\n", append([]string{"grants", "end", "--all"}, world.Kept()...)...).Code).To(BeZero())
		Expect(world.Grants(ctx)).To(BeEmpty())
	})

	It("does not disturb concurrent refreshes", Label("I15"), func(ctx SpecContext) {
		var refreshing sync.WaitGroup
		var rotated atomic.Bool
		for range 4 {
			tokens := client.Connect(ctx)
			refreshing.Go(func() {
				defer GinkgoRecover()
				for last := false; !last; {
					last = rotated.Load()
					answer := client.Token(ctx, client.Refresh(tokens.Refresh))
					Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
					tokens = answer.Tokens()
				}
			})
		}
		for range 4 {
			world.RotateKeys(ctx)
		}
		rotated.Store(true)
		refreshing.Wait()
	})

	It("responds with 503 while the secrets cannot be read, and ends no grant", Label("D30"), func(ctx SpecContext) {
		tokens, code := client.Connect(ctx), client.Authorize(ctx)
		file := filepath.Join(world.Dir, "oauth.db.secret")
		Expect(os.Rename(file, file+".away")).To(Succeed())
		call := func() int { return world.Call(ctx, tokens.Access).StatusCode }
		Eventually(call).WithTimeout(patience).Should(Equal(http.StatusServiceUnavailable)) // read 10 ms ago at most
		Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusServiceUnavailable))
		Expect(client.Token(ctx, client.Exchange(code)).StatusCode).To(Equal(http.StatusServiceUnavailable))
		Expect(os.Rename(file+".away", file)).To(Succeed())
		Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
		Expect(client.Token(ctx, client.Exchange(code)).StatusCode).To(Equal(http.StatusOK))
	})
})

var _ = Describe("Listing the server secrets", Label("stores"), func() {
	It("shows their ages and no secret", Label("H3", "J2"), func(ctx SpecContext) {
		world := NewWorld()
		first := serverSecret(world)
		world.RotateKeys(ctx)
		listed := Run(ctx, append([]string{"keys", "list", "--grant-ttl", "24h"}, world.Kept()...)...)
		Expect(listed.Code).To(BeZero(), listed.Err)
		Expect(listed.Out).
			To(MatchRegexp(`^GENERATED +REPLACED +NEEDED UNTIL\n[-0-9]{10} [:0-9]{8} +in use +-\n([-0-9]{10} ` +
				`[:0-9]{8}( +|\n)){3}$`))
		lines := strings.Split(listed.Out, "\n")
		replaced := must(time.Parse(time.DateTime, lines[2][21:40]))
		Expect(lines[1]).To(HavePrefix(lines[2][21:40]), "the newer secret has replaced it")
		Expect(lines[2]).To(HaveSuffix(replaced.Add(24 * time.Hour).Format(time.DateTime)))
		for _, said := range []string{listed.Out, world.Log.String()} {
			Expect(said).NotTo(
				Or(ContainSubstring(first), ContainSubstring(base64.StdEncoding.EncodeToString([]byte(first)))))
		}
	})

	DescribeTable("fails with a message", func(ctx SpecContext, code int, said string, args ...string) {
		refused := Run(ctx, append([]string{"keys"}, args...)...)
		Expect(refused.Code).To(Equal(code), refused.Out)
		Expect(refused.Err).To(ContainSubstring(said))
	},
		Entry("when the data folder is missing", 1, "name its folder with --data", "list", "--data", "/nowhere"),
		Entry("when there is no secret to replace", 1, "name its folder with --data", "rotate", "--data", "/nowhere"),
		Entry("when an age is negative", 2, "write an age such as 4320h", "rotate", "--forget-old=-1h"),
		Entry("when an age is malformed", 2, "forget-old", "rotate", "--forget-old=old"),
	)
})

var _ = Describe("Starting on a SQLite file with a server secret that is not its own", Label("J2", "H7"), func() {
	world := EachWorld()
	var client *Client
	var tokens Tokens
	var file, own string
	BeforeEach(func(ctx SpecContext) {
		world.inFile()
		client, file = world.NewClient(), filepath.Join(world.Dir, "oauth.db.secret")
		tokens = client.Connect(ctx)
		own = serverSecret(world)
		world.Stop()
	})
	replaceBy := func(secret string) {
		GinkgoHelper()
		Expect(os.Remove(file)).To(Succeed())
		if secret != "" {
			Expect(os.WriteFile(file, []byte(secret), 0o600)).To(Succeed())
		}
	}
	start := func() error {
		config := service.Config{DataDir: world.Dir, Development: true, EditorToken: world.Token}
		config.Issuer = world.Issuer
		service, err := service.Open(context.Background(), config)
		if err == nil {
			Expect(service.Close()).To(Succeed())
		}
		return err
	}
	keys := func(ctx context.Context, args ...string) Ran {
		return Run(ctx, append([]string{"keys"}, append(args, world.Kept()...)...)...)
	}

	DescribeTable("is refused with the remedy, changes nothing, and is found by store check:",
		func(ctx SpecContext, secret, problem string) {
			replaceBy(secret)
			refused := start()
			Expect(refused).To(MatchError(And(ContainSubstring(problem), ContainSubstring("restore the"),
				ContainSubstring("keys rotate --forget-old"))))
			Expect(refused.Error()).NotTo(ContainSubstring("ooo"))
			checks, ran := world.CheckStore(ctx)
			Expect(ran.Code).To(Equal(1))
			Expect(checks).To(ContainElement(And(HaveField("Check", "server secret"),
				HaveField("Problem", And(ContainSubstring(problem), ContainSubstring("restore the"))))))
			Expect(Run(ctx, "store", "copy", "--data", world.Dir, "--to",
				"sqlite://"+filepath.Join(GinkgoT().TempDir(), "copy.db"))).
				To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring(problem))))
			rotated := keys(ctx, "rotate")
			Expect(rotated).To(And(HaveField("Code", 1),
				HaveField("Err", And(ContainSubstring(problem), ContainSubstring("restore the")))))

			if secret == "" {
				Expect(file).NotTo(BeAnExistingFile())
			} else {
				Expect(serverSecret(world)).To(Equal(secret))
			}
			Expect(os.WriteFile(file, []byte(own), 0o600)).To(Succeed())
			world.start(world.Issuer[len("http://"):])
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
		},
		Entry("another one", strings.Repeat("o", 32), "used with another server secret"),
		Entry("none", "", "no such file"),
	)

	DescribeTable("begins anew once the operator gives the old one up:", func(ctx SpecContext, secret string) {
		replaceBy(secret)
		rotated := keys(ctx, "rotate", "--forget-old")
		Expect(rotated.Code).To(BeZero(), rotated.Err)
		world.start(world.Issuer[len("http://"):])
		Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
		client.Connect(ctx)
		_, checked := world.CheckStore(ctx)
		Expect(checked.Code).To(BeZero(), checked.Out)
	}, Entry("another one", strings.Repeat("o", 32)), Entry("none", ""))

	It("is refused for the secret before a rotation, also if no service has run since", func(ctx SpecContext) {
		Expect(keys(ctx, "rotate").Code).To(BeZero())
		next := serverSecret(world)
		replaceBy(own)
		Expect(start()).To(MatchError(ContainSubstring("another server secret")))
		replaceBy(next)
		Expect(start()).To(Succeed())
	})
})

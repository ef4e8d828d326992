package features_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/oauth"
)

// listening opens each kind of long stream, and waits until it is established.
var listening = map[string]func(ctx context.Context, world *World, access string) *Stream{
	"HTTP+SSE": func(ctx context.Context, world *World, access string) *Stream {
		return world.Converse(ctx, httpSSE, access).Listen(ctx)
	},
	"the stream of a session": func(ctx context.Context, world *World, access string) *Stream {
		return world.Converse(ctx, sessions, access).Listen(ctx)
	},
	"a subscription": func(ctx context.Context, world *World, access string) *Stream {
		stream := Follow(world.Converse(ctx, stateless, access).
			message(ctx, "subscriptions/listen", params{"notifications": params{"toolsListChanged": true}}))
		Eventually(stream.Events).WithContext(ctx).WithTimeout(patience).
			Should(Receive(HaveField("Data", ContainSubstring("notifications/subscriptions/acknowledged"))))
		return stream
	},
}

var _ = Describe("Closing streams of another process", Label("G16", "E9", "I22", "stores"), func() {
	open := map[string]func() *World{
		"a site":    func() *World { return NewWorld() },
		"a gateway": func() *World { return NewGateway(NewUpstream(apiKey).URL + "/mcp") },
	}
	for of, openWorld := range open {
		for kind, listen := range listening {
			// The server behind it does not support it.
			if of == "a gateway" && kind == "HTTP+SSE" || of == "a site" && kind == "a subscription" {
				continue
			}
			Context("of "+of+", "+kind, func() {
				var world *World
				var replica *Replica
				var client *Client
				var tokens Tokens
				BeforeEach(func(ctx SpecContext) {
					world = openWorld()
					replica, client = world.Replica(), world.NewClient()
					tokens = client.Connect(ctx)
				})
				streams := func(ctx context.Context) (stream, other *Stream) {
					GinkgoHelper()
					return listen(ctx, world, tokens.Access), listen(ctx, world, client.Connect(ctx).Access)
				}
				revoke := func(ctx context.Context, token string) {
					GinkgoHelper()
					Expect(Post(ctx, replica.Address+"/oauth/revoke", url.Values{"token": {token}}).StatusCode).
						To(Equal(http.StatusOK))
				}

				It("happens when the grant ends in another process, and affects no other grant",
					Label("E6"), func(ctx SpecContext) {
						stream, other := streams(ctx)
						revoke(ctx, tokens.Refresh)
						Eventually(stream.Events).WithContext(ctx).WithTimeout(patience).Should(BeClosed())
						Expect(other.Events).NotTo(BeClosed())
					})

				It("happens when only its access token is revoked, and affects no other token of the grant",
					Label("E7"), func(ctx SpecContext) {
						stream, other := streams(ctx)
						next := client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
						newer := listen(ctx, world, next.Access)
						revoke(ctx, tokens.Access)
						Eventually(stream.Events).WithContext(ctx).WithTimeout(patience).Should(BeClosed())
						Expect(newer.Events).NotTo(BeClosed())
						Expect(other.Events).NotTo(BeClosed())
					})

				It("happens when an operator ends all grants", Label("I12"), func(ctx SpecContext) {
					stream, other := streams(ctx)
					ended := RunTyping(ctx, "", append([]string{"grants", "end", "--all", "--yes"}, world.Kept()...)...)
					Expect(ended.Code).To(BeZero(), ended.Err)
					for _, one := range []*Stream{stream, other} {
						Eventually(one.Events).WithContext(ctx).WithTimeout(patience).Should(BeClosed())
					}
				})
			})
		}
	}

	It("also closes an access token's streams in the process of the revocation", Label("E7"), func(ctx SpecContext) {
		world := NewWorld()
		client := world.NewClient()
		tokens := client.Connect(ctx)
		stream := world.Converse(ctx, sessions, tokens.Access).Listen(ctx)
		Expect(client.Revoke(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
		Eventually(stream.Events).WithContext(ctx).WithTimeout(patience).Should(BeClosed())
	})

	It("ends the session, so that no newer grant can use it", Label("G14"), func(ctx SpecContext) {
		world := NewWorld()
		replica, tokens := world.Replica(), world.NewClient().Connect(ctx)
		talk := world.Converse(ctx, sessions, tokens.Access)
		stream := talk.Listen(ctx)
		Expect(replica.EndGrantsOf(ctx, world.Token)).To(Equal(1))
		Eventually(stream.Events).WithContext(ctx).WithTimeout(patience).Should(BeClosed())
		talk.Access = world.NewClient().Connect(ctx).Access
		Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
	})
})

var _ = Describe("A change at one of three replicas", Label("E9", "G7", "I22", "stores"), func() {
	const elsewhere = 1500 * time.Millisecond
	var site *TokenSite
	var one *World
	var others []*Replica
	var client *Client
	var tokens Tokens
	BeforeEach(func(ctx SpecContext) {
		site = NewTokenSite(overHTTP.yes)
		one = NewWorld(func(config *service.Config) {
			config.Verification, config.RecheckEvery = overHTTP.configure(site.site.URL("/token")), time.Minute
		})
		passive := func(config *service.Config) { config.RecheckEvery = 0 }
		others = []*Replica{one.Replica(passive), one.Replica(passive)}
		client = one.NewClient()
		tokens = client.Connect(ctx)
	})

	// trustIt lets every replica have the grant in its cache. The first flush of uses empties it.
	trustIt := func(ctx context.Context) {
		GinkgoHelper()
		Consistently(func(g Gomega) {
			g.Expect(one.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
			for _, other := range others {
				g.Expect(other.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
			}
		}).WithTimeout(1200 * time.Millisecond).Should(Succeed())
	}

	DescribeTable("ends a token at once there, and within 1.5 seconds elsewhere, by", Label("E6"),
		func(ctx SpecContext, end func(ctx context.Context)) {
			trustIt(ctx)
			end(ctx)
			Expect(one.Call(ctx, tokens.Access)).To(BeChallenged(one, "invalid_token"))
			within := time.Now().Add(elsewhere)
			for _, other := range others {
				Eventually(func() int { return other.Call(ctx, tokens.Access).StatusCode }).
					WithTimeout(max(time.Until(within), time.Millisecond)).Should(Equal(http.StatusUnauthorized))
			}
		},
		Entry("revocation of its grant", func(ctx context.Context) {
			Expect(client.Revoke(ctx, tokens.Refresh).StatusCode).To(Equal(http.StatusOK))
		}),
		Entry("its revocation", Label("E7"), func(ctx context.Context) {
			Expect(client.Revoke(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
		}),
		Entry("the person", Label("J10"), func(ctx context.Context) {
			one.Connections(ctx, one.Token).End(ctx, "")
		}),
		Entry("the operator", Label("I12"), func(ctx context.Context) {
			Expect(one.service.Authz.EndGrants(ctx, func(oauth.Connection) bool { return true })).To(Equal(1))
		}),
		Entry("the site", func(ctx context.Context) {
			Expect(one.EndGrantsOf(ctx, one.Token)).To(Equal(1))
		}),
	)

	It("takes a role away at once there, and within 1.5 seconds elsewhere", Label("J8", "roles"),
		func(ctx SpecContext) {
			tools := func(at *World) []string {
				return at.Converse(ctx, stateless, tokens.Access).Ask(ctx, "tools/list", params{}).Tools()
			}
			trustIt(ctx)
			site.Answer(http.StatusOK, overHTTP.author)
			for _, other := range others {
				Expect(tools(other.World)).To(ConsistOf(editorTools))
			}
			one.Clock.Advance(time.Minute)
			Expect(tools(one)).To(ConsistOf(authorTools))
			within := time.Now().Add(elsewhere)
			for _, other := range others {
				Eventually(func() []string { return tools(other.World) }).
					WithTimeout(max(time.Until(within), time.Millisecond)).Should(ConsistOf(authorTools))
			}
		})
})

// NewReplica starts a service with the settings and the database of this one, and a copy of its
// server secret.
func (w *World) NewReplica() *World {
	GinkgoHelper()
	replica := newWorld(w.adjust, func(config *service.Config) { config.Issuer = w.Issuer })
	replica.Clients, replica.Clock, replica.Database = w.Clients, w.Clock, w.Database
	if w.Database == "" {
		own := filepath.Join(replica.Dir, oauthDatabase)
		Expect(os.Remove(own)).To(Succeed())
		Expect(os.Symlink(filepath.Join(w.Dir, oauthDatabase), own)).To(Succeed())
	}
	replica.keepSecrets(serverSecret(w))
	replica.start("127.0.0.1:0")
	DeferCleanup(func() { replica.Stop() })
	return replica
}

// keepSecrets replaces the secret file of a service, as an updated Kubernetes Secret does.
func (w *World) keepSecrets(secrets ...string) {
	GinkgoHelper()
	text := secrets[0]
	if len(secrets) > 1 {
		text = ""
		for _, secret := range secrets {
			text += time.Now().UTC().Format(time.RFC3339) + " " +
				base64.StdEncoding.EncodeToString([]byte(secret)) + "\n"
		}
	}
	file := filepath.Join(w.Dir, "oauth.db.secret")
	Expect(os.WriteFile(file+".next", []byte(text), 0o600)).To(Succeed())
	Expect(os.Rename(file+".next", file)).To(Succeed())
}

var _ = Describe("Replacing the server secret of replicas one after the other", Label("J2"), func() {
	var one, other *World
	var client *Client
	var before, next string
	BeforeEach(func() {
		one = NewWorld()
		other, client = one.NewReplica(), one.NewClient()
		before, next = serverSecret(one), strings.Repeat("the next one of 32", 2)[:32]
	})
	refresh := func(ctx SpecContext, at *World, token string) Response {
		GinkgoHelper()
		return Post(ctx, at.Issuer+"/oauth/token", client.Refresh(token))
	}

	It("keeps all grants when all replicas have the new secret before one seals with it", func(ctx SpecContext) {
		token := client.Connect(ctx).Refresh
		for _, change := range []func(){
			func() {},
			func() { one.keepSecrets(before, next) },
			func() { other.keepSecrets(before, next) },
			func() { one.keepSecrets(next, before) },
			func() { other.keepSecrets(next, before) },
		} {
			open := client.Consent(ctx)
			change()
			for _, at := range []*World{one, other, one} {
				answer := refresh(ctx, at, token)
				Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
				token = answer.Tokens().Refresh
			}
			form := url.Values{
				"ticket":       {open.Hidden.Get("ticket")},
				"decision":     {"approve"},
				"bearer_token": {one.Token},
			}
			Expect(Post(ctx, other.Issuer+"/oauth/authorize", form).StatusCode).To(Equal(http.StatusSeeOther))
		}
	})

	It("treats what was issued under a secret that a replica does not have yet as an outage, and ends nothing",
		Label("J6", "H2", "D30"), func(ctx SpecContext) {
			token := client.Connect(ctx).Refresh
			one.keepSecrets(next, before)
			token = refresh(ctx, one, token).Tokens().Refresh
			open := client.Consent(ctx)
			// The replica refuses the token until the first one has stored the fingerprint of its
			// new secret.
			Eventually(func() int { return refresh(ctx, other, token).StatusCode }).WithTimeout(patience).
				Should(Equal(http.StatusServiceUnavailable))
			form := url.Values{
				"ticket":       {open.Hidden.Get("ticket")},
				"decision":     {"approve"},
				"bearer_token": {one.Token},
			}
			Expect(Post(ctx, other.Issuer+"/oauth/authorize", form).StatusCode).To(Equal(http.StatusBadRequest))
			other.keepSecrets(next, before)
			Expect(refresh(ctx, other, token).StatusCode).To(Equal(http.StatusOK))
			Expect(Post(ctx, other.Issuer+"/oauth/authorize", form).StatusCode).To(Equal(http.StatusSeeOther))
		})
})

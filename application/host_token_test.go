package application

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/limits"
	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

const (
	issuer   = "https://cms.example"
	clientID = "https://client.example/client.json"
	callback = "https://client.example/callback"
	verifier = "a-verifier-that-is-long-enough-for-the-rules"
)

var firstResource = oauth.NewResource(issuer + "/mcp")

// oneClient is a directory that knows one client.
type oneClient struct{}

func (oneClient) Client(_ context.Context, id oauth.ClientID, _ string) (*client.Metadata, error) {
	return new(client.Rules).NewMetadata(id,
		map[string]any{"client_id": id.String(), "client_name": "Client", "redirect_uris": []any{callback}})
}

// countingStore counts reads.
type countingStore struct {
	*persistence.Store
	reads atomic.Int64
}

func (s *countingStore) Find(ctx context.Context, of oauth.Selection) (oauth.Authorizations, error) {
	s.reads.Add(1)
	return s.Store.Find(ctx, of)
}

func openStore() *countingStore {
	GinkgoHelper()
	store, err := persistence.OpenSQLite(filepath.Join(GinkgoT().TempDir(), "oauth.db"))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(store.Close()).To(Succeed()) })
	return &countingStore{Store: store}
}

// serverOver is a server with two resources, whose site knows every token.
func serverOver(store oauth.Store, change func(*oauth.Config)) *Server {
	GinkgoHelper()
	config := oauth.Config{
		Issuer:       issuer,
		VerifyBearer: func(string) bool { return true },
		Secret:       make([]byte, oauth.MinSecretLength),
		Now:          time.Now,
		Random:       rand.Reader,
		MoreServers:  []oauth.ProtectedServer{{Resource: issuer + "/more"}},
	}
	change(&config)
	settings, err := config.Settings()
	Expect(err).NotTo(HaveOccurred())
	clients, err := client.NewRules(config)
	Expect(err).NotTo(HaveOccurred())
	return NewServer(settings, clients, Ports{
		Store:   store,
		Clients: oneClient{},
		Lanes:   limits.NewLanes(settings.Limits.WrongTokens, time.Now, nil),
		Now:     time.Now,
		Random:  rand.Reader,
		Logger:  slog.New(slog.DiscardHandler),
		Verifier: site(func(context.Context, string) (oauth.Principal, error) {
			return oauth.Principal{Subject: "ada"}, nil
		}),
	})
}

// answering replaces the verifier.
func (s *Server) answering(verify site) {
	s.guard = newVerifierGuard(verify, s.Settings, s.ports)
}

// connect goes all the way from the request to tokens.
func (s *Server) connect(ctx context.Context, scope string) *oauth.Tokens {
	GinkgoHelper()
	redirect, err := s.Authorize.Approve(ctx, s.consent(ctx, scope), Pasted{Token: "host-token"})
	Expect(err).NotTo(HaveOccurred())
	target, err := url.Parse(redirect.Location)
	Expect(err).NotTo(HaveOccurred())
	tokens, err := s.Tokens.Exchange(ctx, client.Credentials{Client: clientID},
		oauth.Parameters{"code": {target.Query().Get("code")}, "code_verifier": {verifier}})
	Expect(err).NotTo(HaveOccurred())
	return tokens
}

func (s *Server) refresh(ctx context.Context, token oauth.Secret) (*oauth.Tokens, error) {
	return s.Tokens.Refresh(ctx, client.Credentials{Client: clientID},
		oauth.Parameters{"refresh_token": {token.Reveal()}})
}

var _ = Describe("Forwarding the host token to the upstream", func() {
	var store *countingStore
	var server *Server
	sendingOn := func(c *oauth.Config) { c.HostTokenInUse = true }
	BeforeEach(func() {
		store = openStore()
		server = serverOver(store, sendingOn)
	})
	refusedAs := func(kind oauth.Kind, err error) {
		GinkgoHelper()
		found, _ := oauth.KindOf(err)
		Expect(found).To(Equal(kind), "%v", err)
	}

	DescribeTable("unseals it with the access token, with one read of the store for the calls of a second",
		Label("U6", "J3", "J13"), func(ctx SpecContext, scope string) {
			tokens := server.connect(ctx, scope)
			store.reads.Store(0)
			caller, host, err := server.Tokens.AuthenticateWithHostToken(ctx, tokens.Access.Reveal(),
				firstResource)
			Expect(err).NotTo(HaveOccurred())
			Expect(host.Reveal()).To(Equal("host-token"))
			Expect(server.Tokens.Authenticate(ctx, tokens.Access.Reveal(), firstResource)).To(Equal(caller))
			Expect(store.reads.Load()).To(BeEquivalentTo(1))
		}, Entry("with refresh tokens", "mcp offline_access"), Entry("without refresh tokens", "mcp"))

	DescribeTable("refuses",
		Label("U6", "G7", "G8"), func(ctx SpecContext, present func(*oauth.Tokens) (string, string)) {
			bearer, resource := present(server.connect(ctx, "mcp offline_access"))
			_, host, err := server.Tokens.AuthenticateWithHostToken(ctx, bearer, oauth.NewResource(resource))
			refusedAs(oauth.InvalidToken, err)
			Expect(host).To(BeZero())
		},
		Entry("a token for another resource", func(t *oauth.Tokens) (string, string) {
			return t.Access.Reveal(), issuer + "/more"
		}),
		Entry("a refresh token", func(t *oauth.Tokens) (string, string) { return t.Refresh.Reveal(), issuer + "/mcp" }),
		Entry("no token of ours", func(*oauth.Tokens) (string, string) { return "host-token", issuer + "/mcp" }),
	)

	It("refuses a token from before the setting, and a refresh returns one that works",
		Label("U6"), func(ctx SpecContext) {
			tokens := serverOver(store, func(*oauth.Config) {}).connect(ctx, "mcp offline_access")
			_, _, err := server.Tokens.AuthenticateWithHostToken(ctx, tokens.Access.Reveal(), firstResource)
			refusedAs(oauth.InvalidToken, err)
			next, err := server.refresh(ctx, tokens.Refresh)
			Expect(err).NotTo(HaveOccurred(), "the grant lives")
			_, host, err := server.Tokens.AuthenticateWithHostToken(ctx, next.Access.Reveal(), firstResource)
			Expect(err).NotTo(HaveOccurred())
			Expect(host.Reveal()).To(Equal("host-token"))
		})

	It("ends nothing for a token that belongs to no grant", Label("U8"), func(ctx SpecContext) {
		stray, err := oauth.NewSecret(oauth.AccessTokenSecret, strings.Repeat("0", 32), 1, oauth.Entropy{},
			server.Settings.Keys)
		Expect(err).NotTo(HaveOccurred())
		for _, bearer := range []string{stray.Reveal(), "host-token"} {
			refusedAs(oauth.InvalidToken, server.Tokens.VerifyAfterRefusal(ctx, bearer, firstResource))
		}
	})

	It("ends nothing while the site knows the host token, and verifies again after ten seconds",
		Label("U8"), func(ctx SpecContext) {
			tokens := server.connect(ctx, "mcp offline_access")
			now, asked := time.Now(), 0
			server.ports.Now = func() time.Time { return now }
			server.answering(func(context.Context, string) (oauth.Principal, error) {
				asked++
				return oauth.Principal{Subject: "ada"}, nil
			})
			verify := func() {
				GinkgoHelper()
				Expect(server.Tokens.VerifyAfterRefusal(ctx, tokens.Access.Reveal(), firstResource)).To(Succeed())
			}
			verify()
			now = now.Add(confirmedFor - time.Second)
			verify()
			Expect(asked).To(Equal(1))
			now = now.Add(time.Second)
			verify()
			Expect(asked).To(Equal(2))
			now = now.Add(-time.Hour) // the clock is set back
			verify()
			Expect(asked).To(Equal(3))
		})

	It("asks the verifier of each server about one token of the site", Label("U8", "G22"), func(ctx SpecContext) {
		server = serverOver(store, func(c *oauth.Config) { c.HostTokenInUse, c.AcceptHostTokens = true, true })
		more := oauth.NewResource(issuer + "/more")
		server.ownGuards[more] = newVerifierGuard(site(func(context.Context, string) (oauth.Principal, error) {
			return oauth.Principal{}, oauth.ErrUnknownBearer
		}), server.Settings, server.ports)
		Expect(server.Tokens.VerifyAfterRefusal(ctx, "host-token", firstResource)).To(Succeed())
		refusedAs(oauth.InvalidToken, server.Tokens.VerifyAfterRefusal(ctx, "host-token", more))
		Expect(server.Tokens.VerifyAfterRefusal(ctx, "host-token", firstResource)).To(Succeed())
	})

	DescribeTable("asks again about a token of the site whose grants end meanwhile, once",
		Label("G22"), func(ctx SpecContext, ends int, own bool, questions int, available bool) {
			server = serverOver(store, func(c *oauth.Config) { c.HostTokenInUse, c.AcceptHostTokens = true, true })
			host, err := oauth.ParseHostToken("host-token")
			Expect(err).NotTo(HaveOccurred())
			print, err := server.Settings.Keys.Fingerprint(host)
			Expect(err).NotTo(HaveOccurred())
			if !own {
				print[0]++
			}
			asked := 0
			server.answering(func(context.Context, string) (oauth.Principal, error) {
				if asked++; asked <= ends {
					server.Operator.ForgetDirectTokens([]oauth.Fingerprint{print})
				}
				return oauth.Principal{Subject: "ada"}, nil
			})
			caller, err := server.Tokens.Authenticate(ctx, "host-token", firstResource)
			Expect(asked).To(Equal(questions))
			if available {
				Expect(err).NotTo(HaveOccurred())
				Expect(caller.Subject).To(Equal("ada"))
			} else {
				Expect(err).To(MatchError(oauth.ErrUnavailable))
			}
		},
		Entry("its grants end once", 1, true, 2, true),
		Entry("its grants end again and again", 9, true, 2, false),
		Entry("grants of another token end", 9, false, 1, true),
	)
})

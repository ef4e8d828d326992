package bootstrap_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

// start starts a host and ends it; it returns the lines of its log.
func start(config oauth.Config, store oauth.Store, options ...bootstrap.MCPOption) (log string, err error) {
	GinkgoHelper()
	var written bytes.Buffer
	config.VerifyBearer = func(string) bool { return true }
	config.Logger = slog.New(slog.NewJSONHandler(&written, nil))
	authz, err := bootstrap.NewOAuthServer(config, store)
	if err != nil {
		return "", err
	}
	defer authz.Close()
	server := bootstrap.NewMCPServer(mcp.NewServer(&mcp.Implementation{Name: "site", Version: "1"}, nil),
		append(options, bootstrap.WithOAuth(authz))...)
	Expect(server.Register(echo.New())).To(Succeed())
	return written.String(), nil
}

// sharedStore is a store that other machines may use too.
type sharedStore struct{ *persistence.Store }

func (sharedStore) SharedByReplicas() bool { return true }

var _ = Describe("Starting a host", func() {
	logged := func(config oauth.Config, store oauth.Store, options ...bootstrap.MCPOption) string {
		GinkgoHelper()
		config.Issuer = issuer
		log, err := start(config, store, options...)
		Expect(err).NotTo(HaveOccurred())
		return log
	}

	It("logs in one line the optional interfaces that the store lacks, all of which are documented", func() {
		Expect(logged(oauth.Config{}, openStore())).NotTo(ContainSubstring("missing"))
		var line struct{ Level, Missing string }
		Expect(json.Unmarshal([]byte(logged(oauth.Config{Secret: make([]byte, oauth.MinSecretLength)},
			struct{ oauth.Store }{openStore()})), &line)).To(Succeed())
		Expect(line.Level).To(Equal("INFO"))
		Expect(line.Missing).To(Equal("oauth.EndWatcher, oauth.SharedStore, oauth.SecretVerifier, " +
			"oauth.AuthorizationLister, client.DocumentStore, attempt.Log"))
		page, err := os.ReadFile("../docs/embedding.md")
		Expect(err).NotTo(HaveOccurred())
		for _, name := range strings.Split(line.Missing, ", ") {
			Expect(string(page)).To(ContainSubstring("| `" + name + "` |"))
		}
	})

	It("warns of access tokens so short that some clients refresh before almost every request", func() {
		Expect(logged(oauth.Config{AccessTokenTTL: 6*time.Minute - time.Second}, openStore())).
			To(And(ContainSubstring("WARN"), ContainSubstring("access_token_ttl")))
		Expect(logged(oauth.Config{AccessTokenTTL: 6 * time.Minute}, openStore())).
			NotTo(ContainSubstring("access_token_ttl"))
	})

	It("warns of replicas that share a store but no sessions", Label("R1"), func() {
		const advice = "set advertise (WithPeers)"
		Expect(logged(oauth.Config{}, sharedStore{openStore()})).To(ContainSubstring(advice))
		Expect(logged(oauth.Config{}, sharedStore{openStore()}, bootstrap.WithPeers("http://10.0.1.7:8080"))).
			NotTo(ContainSubstring(advice))
		Expect(logged(oauth.Config{}, openStore())).NotTo(ContainSubstring(advice))
	})

	It("refuses another configured server secret than the store was used with",
		Label("J2"), func() {
			store := openStore()
			with := func(secret byte) error {
				_, err := start(oauth.Config{Issuer: issuer,
					Secret: bytes.Repeat([]byte{secret}, oauth.MinSecretLength)}, store)
				return err
			}
			Expect(with(1)).To(Succeed())
			Expect(with(2)).To(MatchError(oauth.ErrOtherSecret))
			Expect(with(1)).To(Succeed())
		})

	It("refuses another issuer while connections of the old one exist, and names both", Label("F9"),
		func(ctx SpecContext) {
			const before, after = "https://old.example", "https://new.example"
			store := openStore()
			as := func(issuer, resource string) error {
				_, err := start(oauth.Config{Issuer: issuer, Resource: resource}, store)
				return err
			}
			site := openHost(oauth.Config{Issuer: before}, store, nil)
			Expect(as(after, "")).To(Succeed())
			site.code()
			Expect(as(after, "")).To(MatchError(And(ContainSubstring(before), ContainSubstring(after),
				ContainSubstring("set issuer back"), ContainSubstring("pasteport grants end --all"))))
			Expect(as(before, "")).To(Succeed())
			Expect(as(before+"/auth", "")).To(MatchError(ContainSubstring(before)))
			Expect(as(after, before+"/mcp")).To(Succeed(), "it still serves the MCP servers of the old issuer")
			Expect(site.authz.EndGrantsOf(ctx, "host-token")).To(Equal(1))
			Expect(as(after, "")).To(Succeed())
		})

	It("warns once of an http.Server without limits", Label("operations"), func(ctx SpecContext) {
		for _, limited := range []bool{false, true} {
			log := gbytes.NewBuffer()
			site := httptest.NewUnstartedServer(nil)
			site.Config.Handler = hostLoggingTo(log, oauth.Config{Issuer: "http://" + site.Listener.Addr().String(),
				AllowLoopbackIssuer: true}, openStore()).Echo
			if limited {
				site.Config.MaxHeaderBytes, site.Config.ReadTimeout = 32<<10, time.Minute
			}
			site.Start()
			DeferCleanup(site.Close)
			for range 2 {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, site.URL+"/mcp", http.NoBody)
				Expect(err).NotTo(HaveOccurred())
				answer, err := site.Client().Do(r)
				Expect(err).NotTo(HaveOccurred())
				Expect(answer.Body.Close()).To(Succeed())
			}
			if !limited {
				Expect(log).To(gbytes.Say(
					`level=WARN .*http.Server.* missing="MaxHeaderBytes, ReadHeaderTimeout" advice=`))
			}
			Expect(log).NotTo(gbytes.Say("http.Server"))
		}
	})
})

package bootstrap_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
	"github.com/pasteport/pasteport/features/suite"
)

// host is a site with its settings, verifier and store.
type host struct {
	*echo.Echo
	issuer string
	authz  *bootstrap.OAuthServer
}

const (
	issuer   = "https://cms.example"
	clientID = "https://client.example/client.json"
	callback = "http://127.0.0.1:4321/callback"
	verifier = "a-verifier-that-is-long-enough-for-the-rules"
)

// published is a client.Directory of fixed documents.
type published map[string]any

func (p published) Client(_ context.Context, id oauth.ClientID, _ string) (*client.Metadata, error) {
	members := map[string]any{"client_id": id.String(), "client_name": "Client", "redirect_uris": []any{callback}}
	for name, value := range p {
		members[name] = value
	}
	rules, err := client.NewRules(oauth.Config{AllowedPrivateSchemes: []string{"cursor"}})
	if err != nil {
		return nil, err
	}
	return rules.NewMetadata(id, members)
}

// openStore opens an empty store that ends with the spec.
func openStore() *persistence.Store {
	GinkgoHelper()
	store, err := persistence.OpenSQLite(filepath.Join(GinkgoT().TempDir(), "oauth.db"))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(store.Close()).To(Succeed()) })
	return store
}

// openHost builds a site over a store. By default its verifier accepts every token.
func openHost(config oauth.Config, store oauth.Store, clients published, options ...bootstrap.MCPOption) *host {
	GinkgoHelper()
	if config.VerifyBearer == nil && config.Verifier == nil {
		config.VerifyBearer = func(string) bool { return true }
	}
	config.Logger = slog.New(slog.DiscardHandler)
	h := &host{Echo: echo.New(), issuer: config.Issuer}
	var err error
	h.authz, err = bootstrap.NewOAuthServer(config, store, bootstrap.WithClientDirectory(clients))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(h.authz.Close)
	server := bootstrap.NewMCPServer(mcp.NewServer(&mcp.Implementation{Name: "site", Version: "1"}, nil),
		append(options, bootstrap.WithOAuth(h.authz))...)
	Expect(server.Register(h.Echo)).To(Succeed())
	return h
}

// ask sends an authorization request with changed parameters.
func (h *host) ask(change ...func(url.Values)) *httptest.ResponseRecorder {
	sum := sha256.Sum256([]byte(verifier))
	query := url.Values{
		"client_id":             {clientID},
		"redirect_uri":          {callback},
		"response_type":         {"code"},
		"state":                 {"s"},
		"scope":                 {"mcp offline_access"},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(sum[:])},
		"code_challenge_method": {"S256"},
	}
	for _, apply := range change {
		apply(query)
	}
	return answer(h.Echo, httptest.NewRequest(http.MethodGet, h.issuer+"/oauth/authorize?"+query.Encode(), http.NoBody))
}

var ticketField = regexp.MustCompile(`name="ticket" value="([^"]+)"`)

// ticket opens the consent page and returns the ticket of its form.
func (h *host) ticket(change ...func(url.Values)) string {
	GinkgoHelper()
	found := ticketField.FindStringSubmatch(h.ask(change...).Body.String())
	Expect(found).NotTo(BeNil())
	return found[1]
}

func (h *host) approve(ticket string) *httptest.ResponseRecorder {
	return h.post("/oauth/authorize",
		url.Values{"ticket": {ticket}, "decision": {"approve"}, "bearer_token": {"host-token"}})
}

// code approves on the consent page and returns the code.
func (h *host) code(change ...func(url.Values)) string {
	GinkgoHelper()
	w := h.approve(h.ticket(change...))
	Expect(w.Code).To(Equal(http.StatusSeeOther), w.Body.String())
	target, err := url.Parse(w.Header().Get("Location"))
	Expect(err).NotTo(HaveOccurred())
	return target.Query().Get("code")
}

func (h *host) post(path string, form url.Values, change ...func(url.Values)) *httptest.ResponseRecorder {
	for _, apply := range change {
		apply(form)
	}
	r := httptest.NewRequest(http.MethodPost, h.issuer+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return answer(h.Echo, r)
}

func (h *host) exchange(code string, change ...func(url.Values)) *httptest.ResponseRecorder {
	form := url.Values{
		"grant_type":    {"authorization_code"},
		"client_id":     {clientID},
		"code":          {code},
		"code_verifier": {verifier},
	}
	return h.post("/oauth/token", form, change...)
}

func (h *host) refresh(token string, change ...func(url.Values)) *httptest.ResponseRecorder {
	return h.post("/oauth/token",
		url.Values{"grant_type": {"refresh_token"}, "client_id": {clientID}, "refresh_token": {token}}, change...)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{` +
	`"protocolVersion":"2025-11-25","capabilities":{},` +
	`"clientInfo":{"name":"spec","version":"1"}}}`

// call opens a session at the MCP endpoint.
func (h *host) call(access string) *httptest.ResponseRecorder { return h.send(access, initialize) }

// send posts a message to the MCP endpoint.
func (h *host) send(access, message string) *httptest.ResponseRecorder {
	return h.sendTo(h.issuer+"/mcp", access, message)
}

func (h *host) sendTo(endpoint, access, message string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, endpoint, strings.NewReader(message))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+access)
	return answer(h.Echo, r)
}

type tokenAnswer struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Scope   string `json:"scope"`
	Error   string `json:"error"`
}

func tokensOf(w *httptest.ResponseRecorder) (tokens tokenAnswer) {
	GinkgoHelper()
	Expect(json.Unmarshal(w.Body.Bytes(), &tokens)).To(Succeed(), w.Body.String())
	return tokens
}

// clock is a clock that specs can advance.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// resource sets the resource parameters.
func resource(uris ...string) func(url.Values) { return func(v url.Values) { v["resource"] = uris } }

// scope sets the scope parameter.
func scope(names string) func(url.Values) { return func(v url.Values) { v.Set("scope", names) } }

func TestBootstrap(t *testing.T) {
	suite.Run(t, "Bootstrap")
}

var _ = Describe("A log that masks tokens", Label("H8"), func() {
	It("does so in messages, and in attributes of every kind", func() {
		token := "ppa_" + strings.Repeat("x", 80)
		var written bytes.Buffer
		logger := bootstrap.MaskTokens(slog.New(slog.NewTextHandler(&written, nil)))
		Expect(bootstrap.MaskTokens(logger)).To(BeIdenticalTo(logger))
		logger.With("kept", token).WithGroup("group").Error("panic of "+token,
			"text", "/"+token, "error", fmt.Errorf("reading: %w", errors.New("no "+token)),
			slog.Group("inner", "list", []string{token}), "number", 7, "body", json.RawMessage(`"`+token+`"`))
		Expect(written.String()).To(And(Not(ContainSubstring("ppa_")),
			ContainSubstring(`kept="[access token]"`), ContainSubstring(`msg="panic of [access token]"`),
			ContainSubstring(`group.text="/[access token]"`),
			ContainSubstring(`group.error="reading: no [access token]"`),
			ContainSubstring(`group.inner.list="[[access token]]"`), ContainSubstring("group.number=7"),
			ContainSubstring(`group.body="\"[access token]\""`)))
	})
})

// hostLoggingTo builds a site without the SDK.
func hostLoggingTo(log *gbytes.Buffer, config oauth.Config, store oauth.Store) *host {
	GinkgoHelper()
	if config.VerifyBearer == nil && config.Verifier == nil {
		config.VerifyBearer = func(string) bool { return true }
	}
	config.Logger = slog.New(slog.NewTextHandler(log, nil))
	authz, err := bootstrap.NewOAuthServer(config, store, bootstrap.WithClientDirectory(published{}))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(authz.Close)
	h := &host{Echo: echo.New(), issuer: config.Issuer, authz: authz}
	Expect(bootstrap.Guard(func(http.ResponseWriter, *http.Request, oauth.Caller) {}, bootstrap.WithOAuth(authz)).
		Register(h.Echo)).To(Succeed())
	return h
}

var _ = Describe("A host that looks for its own mistake in the log", Label("J17"), func() {
	var log *gbytes.Buffer
	open := func(config oauth.Config, store oauth.Store) *host {
		GinkgoHelper()
		log, config.Issuer = gbytes.NewBuffer(), issuer
		return hostLoggingTo(log, config, store)
	}

	It("finds the text of its verifier's error, without the token, and the trace has the type only",
		Label("B15"), func(ctx SpecContext) {
			site := newFakeVerifier()
			site.set(func(token string) (oauth.Principal, error) {
				return oauth.Principal{}, errors.New("no row for " + token + " in table users")
			})
			h := open(oauth.Config{Verifier: site}, openStore())
			Expect(h.approve(h.ticket())).To(beConsentPage())
			Expect(log.Contents()).To(ContainSubstring(`error="no row for [redacted] in table users"`))
			Expect(log.Contents()).NotTo(ContainSubstring("host-token"))
			h.authz.Close()
			attempts, err := h.authz.Trace(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(attempts).To(HaveLen(1))
			Expect(attempts[0].Steps).
				To(ContainElement(HaveField("Reason",
					And(ContainSubstring("failed with *errors.errorString"), Not(ContainSubstring("table"))))))
		})

	It("finds the type and the place of a panic in its own function, and not the value", func() {
		h := open(oauth.Config{AllowClient: func(string) bool { panic(errors.New("ada@example.com")) }}, openStore())
		Expect(h.ask().Code).To(Equal(http.StatusServiceUnavailable))
		Expect(log.Contents()).
			To(And(ContainSubstring("type *errors.errorString"), ContainSubstring("host_test.go:"),
				Not(ContainSubstring("ada@"))))
	})

	It("finds the place of a panic in its store", Label("G11"), func() {
		var broken atomic.Bool
		h := open(oauth.Config{}, &down{Store: openStore(), panics: &broken})
		tokens := tokensOf(h.exchange(h.code()))
		broken.Store(true)
		Expect(h.call(tokens.Access).Code).To(Equal(http.StatusServiceUnavailable))
		Expect(log.Contents()).
			To(And(ContainSubstring("type string"), ContainSubstring("settings_test.go:"),
				Not(ContainSubstring("rack"))))
	})
})

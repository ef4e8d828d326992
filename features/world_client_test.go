package features_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/net/html"
)

// Client is a minimal MCP client that runs each step of a connection separately.
type Client struct {
	World    *World
	ID       string
	Redirect string
	Verifier string
	State    string
}

func (w *World) NewClient() *Client {
	GinkgoHelper()
	path := "/" + strings.ToLower(rand.Text()) + ".json"
	id := w.Clients.URL(path)
	document := must(json.Marshal(map[string]any{
		"client_id":                  id,
		"client_name":                "Spec Client",
		"redirect_uris":              []string{"http://127.0.0.1/callback", "https://client.example/callback"},
		"grant_types":                []string{"authorization_code", "refresh_token"},
		"token_endpoint_auth_method": "none",
	}))
	w.Clients.Publish(path, string(document))
	return &Client{
		World:    w,
		ID:       id,
		Redirect: "http://127.0.0.1:4321/callback",
		Verifier: rand.Text() + rand.Text(),
		State:    "s+t/a=" + rand.Text(),
	}
}

// EachClient returns a client that is another one in each spec of the container.
func (w *World) EachClient() *Client {
	each := &Client{}
	BeforeEach(func() { *each = *w.NewClient() })
	return each
}

func (c *Client) Challenge() string {
	sum := sha256.Sum256([]byte(c.Verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Request returns a complete authorization request that includes offline_access.
func (c *Client) Request() url.Values {
	return url.Values{
		"response_type":         {"code"},
		"client_id":             {c.ID},
		"redirect_uri":          {c.Redirect},
		"state":                 {c.State},
		"code_challenge":        {c.Challenge()},
		"code_challenge_method": {"S256"},
		"scope":                 {"mcp offline_access"},
		"resource":              {c.World.MCP()},
	}
}

// AskFor opens the authorization endpoint with the parameters.
func (c *Client) AskFor(ctx context.Context, parameters url.Values) Response {
	GinkgoHelper()
	return Get(ctx, c.World.Issuer+"/oauth/authorize?"+parameters.Encode())
}

// Consent opens the consent page; change may alter the request.
func (c *Client) Consent(ctx context.Context, change ...func(url.Values)) Page {
	GinkgoHelper()
	parameters := c.Request()
	for _, apply := range change {
		apply(parameters)
	}
	answer := c.AskFor(ctx, parameters)
	Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
	return ReadPage(answer)
}

// Approve pastes the token into the page's form.
func (p Page) Approve(ctx context.Context, token string, change ...func(*http.Request)) Response {
	GinkgoHelper()
	return p.Submit(ctx, url.Values{"decision": {"approve"}, "bearer_token": {token}}, change...)
}

// Deny presses the deny button.
func (p Page) Deny(ctx context.Context, change ...func(*http.Request)) Response {
	GinkgoHelper()
	return p.Submit(ctx, url.Values{"decision": {"deny"}}, change...)
}

// Authorize goes through the consent page and returns the code.
func (c *Client) Authorize(ctx context.Context, change ...func(url.Values)) string {
	GinkgoHelper()
	answer := c.Consent(ctx, change...).Approve(ctx, c.World.Token)
	Expect(answer.StatusCode).To(Equal(http.StatusSeeOther), answer.Text)
	return answer.Target().Query().Get("code")
}

// Exchange returns the token request for a code.
func (c *Client) Exchange(code string) url.Values {
	return url.Values{
		"grant_type":    {"authorization_code"},
		"client_id":     {c.ID},
		"code":          {code},
		"code_verifier": {c.Verifier},
		"redirect_uri":  {c.Redirect},
		"resource":      {c.World.MCP()},
	}
}

func (c *Client) Refresh(token string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "client_id": {c.ID}, "refresh_token": {token}}
}

func (c *Client) Token(ctx context.Context, form url.Values, change ...func(*http.Request)) Response {
	GinkgoHelper()
	return Post(ctx, c.World.Issuer+"/oauth/token", form, change...)
}

// Tokens is a successful token response, or an error response.
type Tokens struct {
	Access      string `json:"access_token"`
	Refresh     string `json:"refresh_token"`
	Type        string `json:"token_type"`
	Scope       string `json:"scope"`
	ExpiresIn   int    `json:"expires_in"`
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// Tokens parses a response of the token endpoint.
func (r Response) Tokens() Tokens {
	GinkgoHelper()
	var tokens Tokens
	Expect(json.Unmarshal([]byte(r.Text), &tokens)).To(Succeed(), r.Text)
	return tokens
}

// Connect runs a whole code flow and returns the tokens.
func (c *Client) Connect(ctx context.Context, change ...func(url.Values)) Tokens {
	GinkgoHelper()
	answer := c.Token(ctx, c.Exchange(c.Authorize(ctx, change...)))
	Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
	return answer.Tokens()
}

// Revoke sends a token to the revocation endpoint.
func (c *Client) Revoke(ctx context.Context, token string) Response {
	GinkgoHelper()
	return Post(ctx, c.World.Issuer+"/oauth/revoke", url.Values{"token": {token}, "client_id": {c.ID}})
}

const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{` +
	`"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"spec","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{}}}}`

// Call lists the tools of the protected server with an access token and returns the response.
func (w *World) Call(ctx context.Context, access string) Response {
	GinkgoHelper()
	r := must(http.NewRequestWithContext(ctx, http.MethodPost, w.MCP(), strings.NewReader(listTools)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("MCP-Protocol-Version", "2026-07-28")
	r.Header.Set("Mcp-Method", "tools/list")
	if access != "" {
		r.Header.Set("Authorization", "Bearer "+access)
	}
	return Send(r)
}

// Page is an HTML response with its title and form. Hidden has the checked checkboxes, too.
type Page struct {
	Response
	Action string
	Hidden url.Values
	Title  string
}

func ReadPage(answer Response) Page {
	GinkgoHelper()
	root := must(html.Parse(strings.NewReader(answer.Text)))
	page := Page{Response: answer, Hidden: url.Values{}}
	for node := range root.Descendants() {
		switch {
		case node.Type != html.ElementNode:
		case node.Data == "title" && node.FirstChild != nil:
			page.Title = node.FirstChild.Data
		case node.Data == "form":
			page.Action = attribute(node, "action")
		case node.Data == "input" && attribute(node, "name") == "allow" && attribute(node, "type") == "hidden":
			page.Hidden.Add(attribute(node, "name"), attribute(node, "value"))
		case node.Data == "input" && attribute(node, "type") == "hidden":
			page.Hidden.Set(attribute(node, "name"), attribute(node, "value"))
		case node.Data == "input" && attribute(node, "type") == "checkbox" &&
			slices.ContainsFunc(node.Attr, func(a html.Attribute) bool { return a.Key == "checked" }):
			page.Hidden.Add(attribute(node, "name"), attribute(node, "value"))
		}
	}
	return page
}

func attribute(node *html.Node, name string) string {
	for _, a := range node.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// Submit sends the form with its hidden fields and the filled-in fields.
func (p Page) Submit(ctx context.Context, filled url.Values, change ...func(*http.Request)) Response {
	GinkgoHelper()
	return Post(ctx, p.Action, p.fill(filled), change...)
}

// fill adds the hidden fields to a form.
func (p Page) fill(filled url.Values) url.Values {
	for name, values := range p.Hidden {
		filled[name] = values
	}
	return filled
}

// ClientSite is the web site of an MCP client's vendor: it publishes metadata documents over TLS
// and counts requests.
type ClientSite struct {
	server    *httptest.Server
	mu        sync.Mutex
	documents map[string]http.HandlerFunc
	fetches   atomic.Int64
}

// NewClientSite starts an empty site that ends with the spec.
func NewClientSite() *ClientSite {
	s := &ClientSite{documents: map[string]http.HandlerFunc{}}
	s.server = newSiteServer(s)
	s.server.StartTLS()
	DeferCleanup(s.server.Close)
	return s
}

// newSiteServer returns a server with the certificate of all client sites, which is not started
// yet.
func newSiteServer(site http.Handler) *httptest.Server {
	GinkgoHelper()
	certificate := must(siteCertificate())
	s := httptest.NewUnstartedServer(site)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	return s
}

// siteCertificate is elliptic, because a signature with the RSA key of httptest takes 50 times as
// long.
var siteCertificate = sync.OnceValues(func() (certificate tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificate, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signed, err := x509.CreateCertificate(rand.Reader, leaf, leaf, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}, err
})

func (s *ClientSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.fetches.Add(1)
	s.mu.Lock()
	serve, found := s.documents[r.URL.Path]
	s.mu.Unlock()
	if !found {
		http.NotFound(w, r)
		return
	}
	serve(w, r)
}

func (s *ClientSite) Roots() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(s.server.Certificate())
	return roots
}

// Fetches returns the number of requests so far.
func (s *ClientSite) Fetches() int64 { return s.fetches.Load() }

func (s *ClientSite) URL(path string) string { return s.server.URL + path }

func (s *ClientSite) Serve(path string, serve http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.documents[path] = serve
}

// Publish serves the document as JSON and returns its URL, the client_id.
func (s *ClientSite) Publish(path, document string) string {
	s.Serve(path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, document)
	})
	return s.URL(path)
}

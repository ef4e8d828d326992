package sdkserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
	"github.com/pasteport/pasteport/features/suite"
)

func TestServer(t *testing.T) {
	SetDefaultEventuallyTimeout(time.Minute)
	suite.RunParallel(t, "The MCP server in this process")
}

const (
	alice     = "ppa_alice" // grant A, role editor, scope mcp:read
	bob       = "ppa_bob"   // grant B, no role, scopes mcp:read mcp:write
	issuer    = "https://cms.example"
	canonical = "https://cms.example/mcp"
	metadata  = `resource_metadata="https://cms.example/.well-known/oauth-protected-resource/mcp"`
)

// tokens is an Authorization with a few tokens.
type tokens struct {
	mu      sync.Mutex
	callers map[string]oauth.Caller
	outage  error
	asked   []string
}

func (t *tokens) Authenticate(_ context.Context, bearer string, resource oauth.Resource) (oauth.Caller, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked = append(t.asked, bearer)
	if t.outage != nil {
		return oauth.Caller{}, t.outage
	}
	caller, known := t.callers[bearer]
	if !known || resource.String() != canonical {
		return oauth.Caller{}, oauth.Refuse(oauth.InvalidToken, "G7", "unknown", errors.New("the reason is for logs"))
	}
	return caller, nil
}

func (t *tokens) set(change func(*tokens)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(t)
}

// site is a whole MCP server on a loopback port.
type site struct {
	*httptest.Server
	mcp    *Server
	sdk    *sdk.Server
	tokens *tokens
	holds  chan struct{} // one message per running call of "hold"
	ended  chan struct{} // one message per call of "hold" that was cancelled
}

func catalogue() oauth.ScopeCatalogue {
	settings, err := oauth.Config{
		Issuer:       issuer,
		VerifyBearer: func(string) bool { return true },
		Secret:       make([]byte, 32),
		Scopes: []oauth.Scope{{Name: "mcp:read"}, {Name: "mcp:write"},
			{Name: "mcp:admin", Implies: []string{"mcp:write"}}},
		Now:    time.Now,
		Random: strings.NewReader(""),
	}.Settings()
	Expect(err).NotTo(HaveOccurred())
	return settings.Resources[0].Scopes
}

func openSite(change ...func(*Options)) *site {
	GinkgoHelper()
	return openSiteOn(func(*http.Server) {}, change...)
}

// openSiteOn is openSite on a given server.
func openSiteOn(set func(*http.Server), change ...func(*Options)) *site {
	GinkgoHelper()
	s := &site{
		tokens: &tokens{callers: map[string]oauth.Caller{
			alice: {
				Grant:   "A",
				Subject: "alice",
				Roles:   []string{"editor"},
				Scopes:  oauth.NewScopes("mcp:read"),
			},
			bob: {Grant: "B", Subject: "bob", Scopes: oauth.NewScopes("mcp:read", "mcp:write")},
		}},
		holds: make(chan struct{}, 8), ended: make(chan struct{}, 8),
	}
	s.sdk = s.tools()
	e := echo.New()
	s.Server = httptest.NewUnstartedServer(e)
	set(s.Config)
	o := Options{Options: guard.Options{
		Issuer:         issuer,
		Resource:       oauth.NewResource(canonical),
		ResourceName:   "CMS",
		Scopes:         catalogue(),
		Authorization:  s.tokens,
		AllowedHosts:   []string{s.Listener.Addr().String()},
		AllowedOrigins: []string{"https://app.example"},
		Tools:          func(c oauth.Caller, tool string) bool { return tool != "publish" || len(c.Roles) > 0 },
		ToolScopes: func(tool string) oauth.Scopes {
			if tool == "write" || tool == "publish" {
				return oauth.NewScopes("mcp:write")
			}
			return oauth.Scopes{}
		},
	}, Sessions: seal.NewKeyRing(seal.FixedSecrets{make([]byte, 32)})}
	for _, c := range change {
		c(&o)
	}
	e.GET("/*", func(c echo.Context) error { return c.String(http.StatusOK, "a page of the site") })
	s.mcp = New(s.sdk, o)
	s.mcp.Mount(e)
	s.Server.Start()
	DeferCleanup(func() {
		s.mcp.Drain()
		s.CloseClientConnections()
		s.Server.Close()
	})
	return s
}

func (s *site) tools() *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "cms", Version: "1"}, nil)
	type none struct{}
	for _, name := range []string{"read", "write", "publish"} {
		sdk.AddTool(server,
			&sdk.Tool{Name: name}, func(context.Context, *sdk.CallToolRequest, none) (*sdk.CallToolResult, any, error) {
				return text("ran " + name), nil, nil
			})
	}
	sdk.AddTool(server, &sdk.Tool{Name: "whoami"},
		func(_ context.Context, r *sdk.CallToolRequest, _ none) (*sdk.CallToolResult, any, error) {
			caller, ok := CallerOf(r)
			if !ok || r.Extra.Header.Get("Authorization") != "" {
				return text("no caller"), nil, nil
			}
			return text(caller.Subject), nil, nil
		})
	sdk.AddTool(server, &sdk.Tool{Name: "hold"},
		func(ctx context.Context, _ *sdk.CallToolRequest, _ none) (*sdk.CallToolResult, any, error) {
			s.holds <- struct{}{}
			<-ctx.Done()
			s.ended <- struct{}{}
			return nil, nil, ctx.Err()
		})
	return server
}

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

// answer is a response with its body read.
type answer struct {
	*http.Response
	body string
}

func (a answer) challenge() string { return a.Header.Get("WWW-Authenticate") }

// request builds a request; headers come in pairs and may repeat.
func (s *site) request(ctx context.Context, method, path, body string, headers ...string) *http.Request {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		if headers[i] == "Accept" {
			r.Header.Del("Accept")
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func (s *site) send(ctx context.Context, method, path, body string, headers ...string) answer {
	GinkgoHelper()
	return s.do(s.request(ctx, method, path, body, headers...))
}

func (s *site) do(r *http.Request) answer {
	GinkgoHelper()
	response, err := s.Client().Do(r)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return answer{response, string(body)}
}

func as(token string) []string { return []string{"Authorization", "Bearer " + token} }

// follow is a stream that is being read; lines is closed at its end.
type follow struct {
	*http.Response
	lines chan string
}

func (s *site) follow(ctx context.Context, method, path, body string, headers ...string) follow {
	GinkgoHelper()
	response, err := s.Client().Do(s.request(ctx, method, path, body, headers...))
	Expect(err).NotTo(HaveOccurred())
	f := follow{response, make(chan string, 64)}
	go func() {
		defer close(f.lines)
		defer response.Body.Close()
		for scanner := bufio.NewScanner(response.Body); scanner.Scan(); {
			f.lines <- scanner.Text()
		}
	}()
	return f
}

// data returns the payload of the next event.
func (f follow) data() string {
	GinkgoHelper()
	var line string
	Eventually(f.lines).Should(Receive(&line, HavePrefix("data: ")))
	return strings.TrimPrefix(line, "data: ")
}

func call(id int, tool string) string {
	body, _ := json.Marshal(map[string]any{
		"jsonrpc": "2.0",
		"id":      id,
		"method":  "tools/call",
		"params":  map[string]any{"name": tool, "arguments": map[string]any{}},
	})
	return string(body)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{` +
	`"protocolVersion":"2025-11-25","capabilities":{},` +
	`"clientInfo":{"name":"raw","version":"1"}}}`

// session opens a 2025-11-25 session and returns its id.
func (s *site) session(ctx context.Context, token string) string {
	GinkgoHelper()
	opened := s.send(ctx, http.MethodPost, "/mcp", initialize, as(token)...)
	Expect(opened.StatusCode).To(Equal(http.StatusOK), opened.body)
	return opened.Header.Get("Mcp-Session-Id")
}

// in are the headers of a request inside a session.
func in(session, token string) []string {
	return append(as(token), "Mcp-Session-Id", session, "MCP-Protocol-Version", "2025-11-25")
}

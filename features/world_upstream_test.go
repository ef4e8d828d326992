package features_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// UpstreamServer is an MCP server with API keys that records its requests.
type UpstreamServer struct {
	*httptest.Server
	Hanging   chan string // tools with a running call that does not end by itself
	Cancelled chan string // tools whose call was cancelled

	options *mcp.ServerOptions // nil for the defaults
	tools   *mcp.Server
	mu      sync.Mutex
	keys    []string                     // valid keys; nil accepts every request
	keyOf   func(r *http.Request) string // reads the key of a request
	asked   []*http.Request
	wire    bytes.Buffer
	answer  http.HandlerFunc // replaces the MCP server for requests with a valid key
}

const apiKey = "upstream-key-of-the-specs"

func NewUpstream(keys ...string) *UpstreamServer { return NewUpstreamReading(bearerOf, keys...) }

func bearerOf(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// NewUpstreamReading starts an upstream server that reads its key from another part of requests.
func NewUpstreamReading(keyOf func(*http.Request) string, keys ...string) *UpstreamServer {
	return startUpstream(keyOf, keys, (*httptest.Server).Start)
}

// NewUpstreamOf starts an upstream server with options of the SDK, whose only key is apiKey.
func NewUpstreamOf(options *mcp.ServerOptions) *UpstreamServer {
	return startUpstream(bearerOf, []string{apiKey}, (*httptest.Server).Start, options)
}

func NewUpstreamOverTLS(config *tls.Config, keys ...string) *UpstreamServer {
	return startUpstream(bearerOf, keys, func(s *httptest.Server) {
		s.TLS = config
		s.StartTLS()
	})
}

func startUpstream(keyOf func(*http.Request) string, keys []string, start func(*httptest.Server),
	options ...*mcp.ServerOptions) *UpstreamServer {
	u := &UpstreamServer{
		options:   cmp.Or(append(options, nil)...),
		keys:      keys,
		keyOf:     keyOf,
		Hanging:   make(chan string, 10),
		Cancelled: make(chan string, 10),
	}
	u.Server = httptest.NewUnstartedServer(u.handler())
	u.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	start(u.Server)
	DeferCleanup(func() {
		u.CloseClientConnections()
		u.Close()
	})
	return u
}

func (u *UpstreamServer) handler() http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "upstream", Version: "1"}, u.options)
	u.tools = server
	u.addTools(server)
	get := func(*http.Request) *mcp.Server { return server }
	withSessions := mcp.NewStreamableHTTPHandler(get, nil)
	without := mcp.NewStreamableHTTPHandler(get,
		&mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	routes := http.NewServeMux()
	routes.Handle("/sse", mcp.NewSSEHandler(get, nil))
	routes.Handle("/stateless", without)
	routes.Handle("/json", mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: true}))
	routes.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") == stateless {
			without.ServeHTTP(w, r)
			return
		}
		withSessions.ServeHTTP(w, r)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := u.note(r)
		switch {
		case !u.Knows(u.keyOf(r)):
			w.Header().Set("WWW-Authenticate", `Bearer realm="upstream"`)
			http.Error(w, "no such key", http.StatusUnauthorized)
		case answer != nil:
			answer(w, r)
		default:
			routes.ServeHTTP(w, r)
		}
	})
}

func (u *UpstreamServer) addTools(server *mcp.Server) {
	mcp.AddTool(server, &mcp.Tool{Name: "shout"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Text string `json:"text"`
	}) (*mcp.CallToolResult, any, error) {
		return textual(strings.ToUpper(in.Text)), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "delete_all"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return textual("all gone"), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "hang"},
		func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			u.Hanging <- "hang"
			<-ctx.Done()
			u.Cancelled <- "hang"
			return nil, nil, ctx.Err()
		})
}

func (u *UpstreamServer) AddEcho() {
	mcp.AddTool(u.tools, &mcp.Tool{Name: "key"},
		func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			return textual(strings.TrimPrefix(r.Extra.Header.Get("Authorization"), "Bearer ")), nil, nil
		})
}

func (u *UpstreamServer) AddQuestion() {
	mcp.AddTool(u.tools, &mcp.Tool{Name: "ask"},
		func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			given, err := r.Session.Elicit(ctx,
				&mcp.ElicitParams{Message: "Your name?", RequestedSchema: map[string]any{
					"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}},
				}})
			if err != nil {
				return nil, nil, err
			}
			return textual(fmt.Sprint(given.Content["name"])), nil, nil
		})
}

func textual(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func (u *UpstreamServer) note(r *http.Request) http.HandlerFunc {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	dump, _ := httputil.DumpRequest(r, true)
	kept := r.Clone(context.Background())
	kept.Body = io.NopCloser(bytes.NewReader(body))
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked = append(u.asked, kept)
	u.wire.Write(dump)
	return u.answer
}

// Knows reports whether the upstream accepts the key.
func (u *UpstreamServer) Knows(key string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.keys == nil || slices.Contains(u.keys, key)
}

func (u *UpstreamServer) Revoke() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keys = []string{}
}

// Answer replaces the handler for following requests.
func (u *UpstreamServer) Answer(answer http.HandlerFunc) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answer = answer
}

// Asked returns the requests so far, without those of the verifier.
func (u *UpstreamServer) Asked() []*http.Request {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(u.asked), func(r *http.Request) bool {
		return r.Header.Get("X-Request-Id") == ""
	})
}

// Wire returns all received bytes.
func (u *UpstreamServer) Wire() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.wire.String()
}

// serverAt is an MCP server at a URL, and the path under which clients reach it.
func serverAt(path, url string) service.Upstream {
	return service.Upstream{Path: path, Upstream: bootstrap.Upstream{URL: url}}
}

func gatewayTo(upstream string) func(*service.Config) {
	return func(config *service.Config) {
		config.EditorToken = ""
		config.Gateway = service.GatewayConfig{
			Upstreams:     []service.Upstream{serverAt("", upstream)},
			GatewayConfig: bootstrap.GatewayConfig{Patience: time.Minute}.WithDefaults(),
		}
	}
}

// NewGateway starts a gateway to the upstream, whose key people paste; adjust may change its
// settings.
func NewGateway(upstream string, adjust ...func(*service.Config)) *World {
	GinkgoHelper()
	w := newWorld(append([]func(*service.Config){gatewayTo(upstream)}, adjust...)...)
	w.Token = apiKey
	w.start("127.0.0.1:0")
	DeferCleanup(w.Stop)
	return w
}

// NewLibrary starts an upstream with prompts and resources, whose lists have pages of two elements.
func NewLibrary() *UpstreamServer {
	granted := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	upstream := NewUpstreamOf(&mcp.ServerOptions{
		PageSize:         2,
		SubscribeHandler: granted,
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error {
			return nil
		},
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"completed"}}}, nil
		},
	})
	for _, name := range []string{"draft_letter", "draft_report", "fire_person"} {
		upstream.tools.AddPrompt(&mcp.Prompt{Name: name},
			func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{
					Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "got " + name}}}}, nil
			})
	}
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{
			Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "content of " + r.Params.URI}}}, nil
	}
	for _, uri := range []string{"file:///public/a.txt", "file:///public/b.txt", "file:///secret/pay.txt"} {
		upstream.tools.AddResource(&mcp.Resource{Name: uri, URI: uri}, read)
	}
	for _, uri := range []string{"file:///public/{name}", "file:///secret/{name}"} {
		upstream.tools.AddResourceTemplate(&mcp.ResourceTemplate{Name: uri, URITemplate: uri}, read)
	}
	return upstream
}

// people are the answers of a verifier for tokens. It costs much less than a file of tokens, whose
// hash is expensive on purpose.
type people map[string]string

func (p people) verify() service.Verification { return overHTTP.configure(NewKeySite(p).URL("/token")) }

// ada lets the site verify one token, of a person whose name and roles are not ASCII.
func ada(token string) service.Verification {
	return people{token: `{"subject":"Adá,","roles":["editor","café,tea"]}`}.verify()
}

// restricting sets rules with an administrator and a guest.
func restricting() func(*service.Config) {
	verification := people{"token-of-ada": `{"subject":"ada","roles":["admin"]}`,
		"token-of-bob": `{"subject":"bob","roles":["guest"]}`}.verify()
	return func(c *service.Config) {
		static(verification)(c)
		c.Gateway.Policy = service.PolicyConfig{
			Tools:     []string{"allow delete_* for role:admin", "deny delete_*", "allow shout hang more_*"},
			Prompts:   []string{"deny fire_* for role:guest", "allow *"},
			Resources: []string{"allow * for role:admin", "allow file:///public/*"},
		}
	}
}

// withDanger adds the scope danger, which implies mcp.
func withDanger(c *service.Config) {
	c.Scopes = slices.Grow(c.Scopes, 2)[:2]
	c.Scopes[0].Name, c.Scopes[1].Name, c.Scopes[1].Implies = "mcp", "danger", []string{"mcp"}
}

func everyPage(ctx context.Context, talk *Conversation, method, list, named string) (names []string) {
	GinkgoHelper()
	p := params{}
	for range 10 {
		var page struct {
			Result map[string]json.RawMessage
		}
		Expect(json.Unmarshal([]byte(talk.raw(ctx, method, p)), &page)).To(Succeed())
		var elements []map[string]any
		Expect(json.Unmarshal(page.Result[list], &elements)).To(Succeed())
		for _, element := range elements {
			names = append(names, element[named].(string))
		}
		var next string
		if page.Result["nextCursor"] == nil {
			return names
		}
		Expect(json.Unmarshal(page.Result["nextCursor"], &next)).To(Succeed())
		p = params{"cursor": next}
	}
	Fail("the list does not end")
	return nil
}

// raw sends a request and returns the text of its response.
func (c *Conversation) raw(ctx context.Context, method string, p params) (text string) {
	GinkgoHelper()
	sent := c.Post(ctx, method, p)
	switch {
	case c.Revision == httpSSE:
		return c.stream.Next("message")
	case strings.HasPrefix(sent.Header.Get("Content-Type"), "text/event-stream"):
		for event := range events(strings.NewReader(sent.Text)) {
			text = event.Data
		}
		return text
	}
	return sent.Text
}

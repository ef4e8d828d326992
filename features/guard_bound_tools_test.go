package features_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

// toolHost is a Go site whose MCP server changes its tools.
type toolHost struct {
	*World
	tools *mcp.Server
	calls int  // that reached a tool
	fails bool // it does not list its tools
}

// openToolHost starts a host on the store in a folder, at the issuer of the first one.
func openToolHost(first *World, folder string, adjust func(*oauth.Config), options ...bootstrap.MCPOption) *toolHost {
	GinkgoHelper()
	host := &toolHost{tools: mcp.NewServer(&mcp.Implementation{Name: "host", Version: "1"},
		&mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})}
	host.add("read", "Read a note", "")
	host.add("write", "Write a note", "")
	host.tools.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/list" && host.fails {
				return nil, errors.New("no tools now")
			}
			return next(ctx, method, req)
		}
	})
	store, err := persistence.OpenSQLite(filepath.Join(folder, "oauth.db"))
	Expect(err).NotTo(HaveOccurred())
	server := httptest.NewUnstartedServer(nil)
	world := &World{Issuer: "http://" + server.Listener.Addr().String(), Token: "token-of-ada-at-the-host"}
	if first == nil {
		first = world
		first.Clients, first.Clock = NewClientSite(), NewClock()
	}
	world.Clients, world.Clock = first.Clients, first.Clock
	config := oauth.Config{
		Issuer:               first.Issuer,
		VerifyBearer:         func(token string) bool { return token == world.Token },
		AllowLoopbackIssuer:  true,
		AllowLoopbackClients: true,
		BindTools:            true,
		Now:                  world.Clock.Now,
	}
	adjust(&config)
	authz, err := bootstrap.NewOAuthServer(config, store, bootstrap.WithRootCAs(first.Clients.Roots()))
	Expect(err).NotTo(HaveOccurred())
	protected := bootstrap.NewMCPServer(host.tools, append(options, bootstrap.WithOAuth(authz),
		bootstrap.WithPeers(world.Issuer))...)
	server.Config.Handler, err = protected.Handler()
	Expect(err).NotTo(HaveOccurred())
	server.Start()
	DeferCleanup(func() {
		protected.Drain()
		server.CloseClientConnections()
		server.Close()
		authz.Close()
		Expect(store.Close()).To(Succeed())
	})
	host.World = world
	return host
}

// scopeSite knows every token, which may grant these scopes.
type scopeSite []string

func (s scopeSite) VerifyBearer(context.Context, string) (oauth.Principal, error) {
	return oauth.Principal{Subject: "ada", Scopes: s}, nil
}

// add adds a tool, or replaces the one of this name. Field is a further input; "" for none.
func (h *toolHost) add(name, description, field string) {
	properties := map[string]any{"text": map[string]any{"type": "string"}}
	if field != "" {
		properties[field] = map[string]any{"type": "string"}
	}
	h.tools.AddTool(&mcp.Tool{
		Name:        name,
		Description: description,
		InputSchema: map[string]any{"type": "object", "properties": properties},
	}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		h.calls++
		return textual("done"), nil
	})
}

// tryTool calls a tool and returns the response.
func (c *Conversation) tryTool(ctx context.Context, tool string) Response {
	GinkgoHelper()
	return c.Post(ctx, "tools/call", params{"name": tool, "arguments": params{}})
}

// expectNewConsent expects the challenge for a tool that is not as it was.
func expectNewConsent(refused Response) {
	GinkgoHelper()
	Expect(refused.StatusCode).To(Equal(http.StatusForbidden), refused.Text)
	Expect(refused.Header.Get("WWW-Authenticate")).To(And(ContainSubstring(`error="insufficient_scope"`),
		ContainSubstring(`scope="mcp"`), ContainSubstring("resource_metadata=")))
}

// review submits the token, and expects the page about changed tools.
func (c *Client) review(ctx context.Context) Page {
	GinkgoHelper()
	page := ReadPage(c.Consent(ctx).Approve(ctx, c.World.Token))
	Expect(page.StatusCode).To(Equal(http.StatusOK), page.Text)
	Expect(page.Title).To(HavePrefix("The tools of "))
	return page
}

var _ = Describe("Tools as they were at consent", Label("G23"), func() {
	var host *toolHost
	var client *Client
	var folder string
	unchanged := func(*oauth.Config) {}
	BeforeEach(func() {
		folder = GinkgoT().TempDir()
		host = openToolHost(nil, folder, unchanged)
		client = host.NewClient()
	})

	DescribeTable("passes calls of tools that are unchanged, and no others, in revision",
		func(ctx SpecContext, revision string) {
			talk := host.Converse(ctx, revision, client.Connect(ctx).Access)
			for _, change := range []func(){
				func() { host.add("write", "Write a note, and tell everybody", "") },
				func() { host.add("write", "Write a note", "password") },
			} {
				Expect(talk.Use(ctx, "write", params{}).Text()).To(Equal("done"))
				before := host.calls
				change()
				expectNewConsent(talk.tryTool(ctx, "write"))
				Expect(host.calls).To(Equal(before))
				Expect(talk.Use(ctx, "read", params{}).Text()).To(Equal("done"), "another tool")
				host.add("write", "Write a note", "")
			}
			before := host.calls
			host.add("delete", "Delete all notes", "")
			expectNewConsent(talk.tryTool(ctx, "delete"))
			Expect(host.calls).To(Equal(before))
			Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf("read", "write", "delete"))
		}, revisions())

	It("asks for the scopes of the call, so that one more consent is enough", Label("G10"), func(ctx SpecContext) {
		const wanted = "danger mcp"
		host = openToolHost(nil, GinkgoT().TempDir(), func(config *oauth.Config) {
			config.Scopes = []oauth.Scope{{Name: "mcp", Description: "Read"}, {Name: "danger", Description: "Write"}}
			config.VerifyBearer, config.Verifier = nil, scopeSite{"mcp", "danger"}
		}, bootstrap.WithToolScopes(func(tool string) oauth.Scopes {
			return map[string]oauth.Scopes{"write": oauth.NewScopes("danger"), "read": oauth.NewScopes("mcp")}[tool]
		}))
		client = host.NewClient()
		ask := func(form url.Values) { form.Set("scope", wanted) }
		talk := host.Converse(ctx, stateless, client.Connect(ctx, ask).Access)
		host.add("write", "Write a note, and tell everybody", "")
		refused := talk.tryTool(ctx, "write")
		Expect(refused.StatusCode).To(Equal(http.StatusForbidden))
		Expect(refused.Header.Get("WWW-Authenticate")).To(And(ContainSubstring("has changed since"),
			ContainSubstring(`scope="`+wanted+`"`)))
	})

	It("tells that a tool is unknown when it has gone, because another consent would not help", func(ctx SpecContext) {
		talk := host.Converse(ctx, stateless, client.Connect(ctx).Access)
		host.tools.RemoveTools("write")
		answer := talk.Use(ctx, "write", params{})
		Expect(answer.Error.Message).To(Equal(`unknown tool "write"`))
		Expect(host.calls).To(BeZero())
	})

	It("keeps them through refreshes", func(ctx SpecContext) {
		tokens := client.Connect(ctx)
		host.add("write", "Write a note, and tell everybody", "")
		for range 3 {
			tokens = client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
			talk := host.Converse(ctx, stateless, tokens.Access)
			expectNewConsent(talk.tryTool(ctx, "write"))
			Expect(talk.Use(ctx, "read", params{}).Text()).To(Equal("done"))
		}
	})

	It("has the person see what is new, changed or gone, and approve without pasting again",
		Label("B26"), func(ctx SpecContext) {
			old := client.Connect(ctx)
			host.add("write", "Write a note, and <b>tell</b> everybody", "")
			host.add("delete", "Delete all notes", "")
			host.tools.RemoveTools("read")
			page := client.review(ctx)
			Expect(page.Text).To(MatchRegexp(`(?s)<h2 id="new">New</h2>.*<bdi>delete</bdi>.*Delete all notes.*` +
				`<h2 id="changed">Changed[^<]+</h2>.*<bdi>write</bdi>.*and &lt;b&gt;tell&lt;/b&gt; everybody.*` +
				`<h2 id="gone">Gone[^<]+</h2>.*<bdi>read</bdi>`))
			Expect(page.Text).NotTo(Or(ContainSubstring(host.Token), ContainSubstring("<script")))
			tokens := client.exchangeFrom(ctx, page.Submit(ctx, url.Values{"decision": {"approve"}}))
			talk := host.Converse(ctx, stateless, tokens.Access)
			Expect(talk.Use(ctx, "write", params{}).Text()).To(Equal("done"))
			Expect(talk.Use(ctx, "delete", params{}).Text()).To(Equal("done"))
			expectNewConsent(host.Converse(ctx, stateless, old.Access).tryTool(ctx, "write"))
			Expect(client.Consent(ctx).Approve(ctx, host.Token).StatusCode).To(Equal(http.StatusSeeOther),
				"nothing has changed since")
		})

	It("shows the page again when the tools change after it was shown", Label("B26"), func(ctx SpecContext) {
		client.Connect(ctx)
		host.add("delete", "Delete a note", "")
		page := client.review(ctx)
		host.add("delete", "Delete all notes", "")
		again := ReadPage(page.Submit(ctx, url.Values{"decision": {"approve"}}))
		Expect(again.StatusCode).To(Equal(http.StatusOK))
		Expect(again.Text).To(ContainSubstring("Delete all notes"))
		Expect(again.Submit(ctx, url.Values{"decision": {"approve"}}).StatusCode).To(Equal(http.StatusSeeOther))
	})

	It("gives nothing to a person who denies there", Label("B5", "B26"), func(ctx SpecContext) {
		client.Connect(ctx)
		host.add("delete", "Delete a note", "")
		denied := client.review(ctx).Deny(ctx)
		Expect(denied.Target().Query().Get("error")).To(Equal("access_denied"))
	})

	It("takes the page of one form for no other, and no text of one's own", Label("B26", "B4"), func(ctx SpecContext) {
		client.Connect(ctx)
		host.add("delete", "Delete a note", "")
		page := client.review(ctx)
		other := client.review(ctx)
		other.Hidden["reviewed"] = page.Hidden["reviewed"]
		Expect(other.Submit(ctx, url.Values{"decision": {"approve"}}).StatusCode).To(Equal(http.StatusBadRequest))
		page.Hidden.Set("reviewed", rand.Text())
		Expect(page.Submit(ctx, url.Values{"decision": {"approve"}}).StatusCode).To(Equal(http.StatusBadRequest))
	})

	It("speaks of the changes to the same person with the same client only", Label("B26"), func(ctx SpecContext) {
		client.Connect(ctx)
		host.add("delete", "Delete a note", "")
		Expect(host.NewClient().Connect(ctx).Access).NotTo(BeEmpty())
	})

	It("holds on every replica, also on one with other tools", Label("replicas"), func(ctx SpecContext) {
		other := openToolHost(host.World, folder, unchanged)
		access := client.Connect(ctx).Access
		there := other.Converse(ctx, stateless, access)
		Expect(there.Use(ctx, "write", params{}).Text()).To(Equal("done"))
		other.add("write", "Write a note, and tell everybody", "")
		expectNewConsent(there.tryTool(ctx, "write"))
		Expect(host.Converse(ctx, stateless, access).Use(ctx, "write", params{}).Text()).To(Equal("done"))
	})

	It("holds where the session is, also for a request that reaches a replica with the tools of before",
		Label("replicas", "R1"), func(ctx SpecContext) {
			folder = GinkgoT().TempDir()
			host = openToolHost(nil, folder, unchanged)
			other := openToolHost(host.World, folder, unchanged)
			talk := host.Converse(ctx, sessions, host.NewClient().Connect(ctx).Access)
			there := talk.At(other.World)
			Expect(there.Use(ctx, "write", params{}).Text()).To(Equal("done"))
			Expect(host.calls).To(Equal(1), "the session is there")
			host.add("write", "Write a note, and tell everybody", "")
			expectNewConsent(there.tryTool(ctx, "write"))
			Expect(there.Use(ctx, "read", params{}).Text()).To(Equal("done"))
			Expect(host.calls + other.calls).To(Equal(2))
		})

	It("asks for a consent for every tool of a connection that was made while it was off", func(ctx SpecContext) {
		folder = GinkgoT().TempDir()
		host = openToolHost(nil, folder, func(config *oauth.Config) { config.BindTools = false })
		client = host.NewClient()
		access := client.Connect(ctx).Access
		host.add("write", "Write a note, and tell everybody", "")
		Expect(host.Converse(ctx, stateless, access).Use(ctx, "write", params{}).Text()).To(Equal("done"),
			"off by default")
		other := openToolHost(host.World, folder, unchanged)
		expectNewConsent(other.Converse(ctx, stateless, access).tryTool(ctx, "read"))
	})

	It("grants nothing when the tools cannot be listed", Label("B26"), func(ctx SpecContext) {
		access := client.Connect(ctx).Access
		host.fails = true
		refused := ReadPage(client.Consent(ctx).Approve(ctx, host.Token))
		Expect(refused.StatusCode).To(Equal(http.StatusServiceUnavailable), refused.Text)
		Expect(refused.Title).To(HavePrefix("Not connected yet"))
		Expect(refused.Text).To(ContainSubstring("The tools of this server cannot be listed just now"))
		Expect(host.Converse(ctx, stateless, access).tryTool(ctx, "read").StatusCode).
			To(Equal(http.StatusServiceUnavailable))
		Expect(host.calls).To(BeZero())
		host.fails = false
		Expect(refused.Approve(ctx, host.Token).StatusCode).To(Equal(http.StatusSeeOther))
	})

	It("binds a person to the tools that their roles let them see", Label("U26"), func(ctx SpecContext) {
		all := false
		host = openToolHost(nil, GinkgoT().TempDir(), unchanged, bootstrap.WithToolPolicy(
			func(_ oauth.Caller, tool string) bool { return all || tool == "read" }))
		client = host.NewClient()
		talk := host.Converse(ctx, stateless, client.Connect(ctx).Access)
		Expect(talk.Use(ctx, "write", params{}).Error.Message).To(Equal(`unknown tool "write"`))
		all = true
		expectNewConsent(talk.tryTool(ctx, "write"))
		Expect(client.review(ctx).Text).To(ContainSubstring("<bdi>write</bdi>"))
	})
})

package features_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// bindingTools switches bind-tools on.
func bindingTools(config *service.Config) { config.BindTools = true }

// AddTool adds a tool, or replaces the one of this name.
func (u *UpstreamServer) AddTool(name, description string) {
	u.tools.AddTool(&mcp.Tool{Name: name, Description: description, InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return textual(description), nil
		})
}

// refuseLists makes the upstream answer each request for its tools with an error.
func (u *UpstreamServer) refuseLists() {
	u.tools.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/list" {
				return nil, errors.New("no tools now")
			}
			return next(ctx, method, req)
		}
	})
}

// holdLists makes the upstream answer no request for its tools until release. The first one closes
// began.
func (u *UpstreamServer) holdLists() (began chan struct{}, release func()) {
	began, held := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(began) })
	u.tools.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/list" {
				first()
				<-held
			}
			return next(ctx, method, req)
		}
	})
	release = sync.OnceFunc(func() { close(held) })
	DeferCleanup(release)
	return began, release
}

// listsDialogueOnlyToAble leaves the tool "dialogue" out of lists for clients without elicitation.
func (u *UpstreamServer) listsDialogueOnlyToAble() {
	u.tools.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, r)
			listed, isList := result.(*mcp.ListToolsResult)
			if !isList || isAble(r.GetSession().(*mcp.ServerSession).InitializeParams()) {
				return result, err
			}
			listed.Tools = slices.DeleteFunc(listed.Tools, func(t *mcp.Tool) bool { return t.Name == "dialogue" })
			return listed, err
		}
	})
}

func isAble(client *mcp.InitializeParams) bool {
	return client != nil && client.Capabilities != nil && client.Capabilities.Elicitation != nil
}

// called reports whether a call of the tool has reached the upstream.
func (u *UpstreamServer) called(tool string) bool {
	return strings.Contains(u.Wire(), `"name":"`+tool+`"`)
}

var _ = Describe("Tools as they were at consent, of an upstream", Label("G23"), func() {
	var upstream *UpstreamServer
	var world *World
	var client *Client
	BeforeEach(func() {
		upstream = NewUpstream(apiKey)
		upstream.AddTool("note", "Write a note")
		world = NewGateway(upstream.URL+"/mcp", bindingTools)
		client = world.NewClient()
	})
	const later = 15 * time.Second

	DescribeTable("passes calls of tools that are unchanged, and no others, in revision",
		func(ctx SpecContext, revision string) {
			talk := world.Converse(ctx, revision, client.Connect(ctx).Access)
			Expect(talk.Use(ctx, "note", params{}).Text()).To(Equal("Write a note"))
			upstream.AddTool("note", "Write a note, and tell everybody")
			upstream.AddTool("erase", "Erase everything")
			Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(ContainElement("erase"))
			expectNewConsent(talk.tryTool(ctx, "note"))
			expectNewConsent(talk.tryTool(ctx, "erase"))
			Expect(upstream.called("erase")).To(BeFalse())
			Expect(talk.Use(ctx, "shout", params{"text": "x"}).Text()).To(Equal("X"), "another tool")
		}, revisions(batching, headers, sessions, stateless))

	It("notices a change that the client has not seen after a quarter of a minute", func(ctx SpecContext) {
		talk := world.Converse(ctx, stateless, client.Connect(ctx).Access)
		Expect(talk.Use(ctx, "note", params{}).Text()).To(Equal("Write a note"))
		upstream.AddTool("note", "Write a note, and tell everybody")
		world.Clock.Advance(later)
		expectNewConsent(talk.tryTool(ctx, "note"))
	})

	It("lists the tools once for many calls", func(ctx SpecContext) {
		talk := world.Converse(ctx, stateless, client.Connect(ctx).Access)
		lists := func() int { return strings.Count(upstream.Wire(), `"method":"tools/list"`) }
		before := lists()
		for range 5 {
			Expect(talk.Use(ctx, "note", params{}).Text()).To(Equal("Write a note"))
		}
		Expect(lists() - before).To(BeNumerically("<=", 1))
	})

	It("lists the tools again after a list, and not after other requests", func(ctx SpecContext) {
		world.Clock.Stop()
		talk := world.Converse(ctx, sessions, client.Connect(ctx).Access)
		lists := func() int { return strings.Count(upstream.Wire(), `"method":"tools/list"`) }
		Expect(talk.Use(ctx, "note", params{}).Text()).To(Equal("Write a note"))
		before := lists()
		talk.Ask(ctx, "ping", params{})
		Expect(talk.Use(ctx, "note", params{}).Text()).To(Equal("Write a note"))
		Expect(lists()).To(Equal(before))
		talk.Ask(ctx, "tools/list", params{})
		Expect(talk.Use(ctx, "note", params{}).Text()).To(Equal("Write a note"))
		Expect(lists()).To(Equal(before+2), "that of the client, and that of the gateway")
	})

	It("checks other tokens while the upstream is slow to list its tools", Label("B20", "B26"),
		func(ctx SpecContext) {
			world = NewGateway(upstream.URL+"/mcp", bindingTools, func(config *service.Config) {
				config.Limits.MaxVerifications = 1
			})
			client = world.NewClient()
			began, release := upstream.holdLists()
			approved := make(chan int, 1)
			go func() {
				defer GinkgoRecover()
				approved <- client.Consent(ctx).Approve(ctx, world.Token).StatusCode
			}()
			Eventually(began).WithTimeout(patience).Should(BeClosed())
			Expect(client.Consent(ctx).Approve(ctx, "wrong").StatusCode).To(Equal(http.StatusForbidden))
			Expect(approved).NotTo(Receive())
			release()
			Eventually(approved).WithTimeout(patience).Should(Receive(Equal(http.StatusSeeOther)))
		})

	It("lists no tools for a call beyond a quota", Label("G21"), func(ctx SpecContext) {
		world = NewGateway(upstream.URL+"/mcp", bindingTools,
			func(config *service.Config) { config.Limits.CallsPerMinute = 1 })
		talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		Expect(talk.Use(ctx, "note", params{}).Text()).To(Equal("Write a note"))
		world.Clock.Advance(later)
		before := upstream.Wire()
		Expect(talk.tryTool(ctx, "note").StatusCode).To(Equal(http.StatusTooManyRequests))
		Expect(upstream.Wire()).To(Equal(before))
	})

	It("connects a server that offers no tools", Label("B26"), func(ctx SpecContext) {
		upstream.tools.RemoveTools("shout", "delete_all", "hang", "note")
		upstream.refuseLists()
		talk := world.Converse(ctx, stateless, client.Connect(ctx).Access)
		Expect(talk.Use(ctx, "note", params{}).Error.Message).To(Equal(`unknown tool "note"`))
	})

	It("tells that a tool is unknown when it has gone, and passes no call of one that is not listed",
		func(ctx SpecContext) {
			talk := world.Converse(ctx, stateless, client.Connect(ctx).Access)
			upstream.tools.RemoveTools("note")
			world.Clock.Advance(later)
			for _, name := range []string{"note", "hidden"} {
				Expect(talk.Use(ctx, name, params{}).Error.Message).To(Equal(`unknown tool "` + name + `"`))
				Expect(upstream.called(name)).To(BeFalse())
			}
		})

	DescribeTable("refuses a call for its headers when they name another tool, and one of the two may not be called:",
		func(ctx SpecContext, inBody, inHeader string) {
			talk := world.Converse(ctx, stateless, client.Connect(ctx).Access)
			upstream.AddTool("erase", "Erase everything")
			world.Clock.Advance(later)
			refused := talk.Post(ctx, "tools/call", params{"name": inBody}, with("Mcp-Name", inHeader))
			Expect(refused.StatusCode).To(Equal(http.StatusBadRequest))
			Expect(refused.Text).To(And(ContainSubstring(`"code":-32020`), ContainSubstring("Mcp-Name differs")))
			Expect(upstream.called(inBody)).To(BeFalse())
		},
		Entry("an unknown one in the body", "unknown", "note"),
		Entry("an unknown one in the header", "note", "unknown"),
		Entry("a new one in the body", "erase", "note"),
		Entry("a new one in the header", "note", "erase"),
	)

	It("finds the tools that only clients with elicitation get", func(ctx SpecContext) {
		upstream.AddTool("dialogue", "Ask the person")
		upstream.listsDialogueOnlyToAble()
		talk := world.Converse(ctx, sessions, client.Connect(ctx).Access)
		Expect(talk.Use(ctx, "dialogue", params{}).Text()).To(Equal("Ask the person"))
	})

	It("finds the tools on every page of the list", func(ctx SpecContext) {
		upstream = NewUpstreamOf(&mcp.ServerOptions{PageSize: 2})
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			upstream.AddTool(name, name)
		}
		world = NewGateway(upstream.URL+"/mcp", bindingTools)
		client = world.NewClient()
		talk := world.Converse(ctx, stateless, client.Connect(ctx).Access)
		for _, name := range []string{"a", "e", "shout"} {
			Expect(talk.tryTool(ctx, name).StatusCode).To(Equal(http.StatusOK))
		}
	})

	It("has the person see the changes and approve again", Label("B26"), func(ctx SpecContext) {
		client.Connect(ctx)
		upstream.AddTool("note", "Write a note, and tell everybody")
		upstream.AddTool("erase", "Erase everything")
		upstream.tools.RemoveTools("hang")
		page := client.review(ctx)
		Expect(page.Text).To(MatchRegexp(`(?s)id="new".*erase.*Erase everything.*id="changed".*note.*id="gone".*hang`))
		Expect(page.Text).NotTo(ContainSubstring(apiKey))
		tokens := client.exchangeFrom(ctx, page.Submit(ctx, url.Values{"decision": {"approve"}}))
		Expect(world.Converse(ctx, stateless, tokens.Access).Use(ctx, "note", params{}).Text()).
			To(Equal("Write a note, and tell everybody"))
	})

	It("grants nothing while the upstream does not list its tools, and passes no call", Label("B26", "U9"),
		func(ctx SpecContext) {
			talk := world.Converse(ctx, stateless, client.Connect(ctx).Access)
			upstream.refuseLists()
			world.Clock.Advance(later)
			Expect(talk.tryTool(ctx, "note").StatusCode).To(Equal(http.StatusServiceUnavailable))
			Expect(upstream.called("note")).To(BeFalse())
			refused := client.Consent(ctx).Approve(ctx, world.Token)
			Expect(refused.StatusCode).To(Equal(http.StatusServiceUnavailable))
			Expect(refused.Text).To(ContainSubstring("The tools of this server cannot be listed just now"))
		})

	It("ends the connection when the upstream refuses the key there", Label("U8"), func(ctx SpecContext) {
		talk := world.Converse(ctx, stateless, client.Connect(ctx).Access)
		upstream.Revoke()
		world.Clock.Advance(later)
		Expect(talk.tryTool(ctx, "note").StatusCode).To(Equal(http.StatusUnauthorized))
	})

	It("holds on every replica", Label("replicas"), func(ctx SpecContext) {
		replica := world.Replica()
		access := client.Connect(ctx).Access
		there := replica.Converse(ctx, stateless, access)
		Expect(there.Use(ctx, "note", params{}).Text()).To(Equal("Write a note"))
		upstream.AddTool("note", "Write a note, and tell everybody")
		Expect(there.Ask(ctx, "tools/list", params{}).Tools()).To(ContainElement("note"))
		expectNewConsent(there.tryTool(ctx, "note"))
		world.Clock.Advance(later)
		expectNewConsent(world.Converse(ctx, stateless, access).tryTool(ctx, "note"))
	})

	It("is off by default", func(ctx SpecContext) {
		world = NewGateway(upstream.URL + "/mcp")
		talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		upstream.AddTool("note", "Write a note, and tell everybody")
		Expect(talk.Use(ctx, "note", params{}).Text()).To(Equal("Write a note, and tell everybody"))
	})
})

var _ = Describe("Tools as they were at consent, of a program over stdio", Label("G23"), func() {
	DescribeTable("passes no call of a tool that another process of the program describes differently",
		func(ctx SpecContext, notice func(context.Context, *Conversation)) {
			manual := filepath.Join(GinkgoT().TempDir(), "manual")
			describe := func(text string) { Expect(os.WriteFile(manual, []byte(text), 0o600)).To(Succeed()) }
			describe("Write in capitals")
			world := openProgram(ctx, []string{manual}, bindingTools)
			client := world.NewClient()
			talk := world.Converse(ctx, sessions, client.Connect(ctx).Access)
			Expect(talk.Use(ctx, "shout", params{"text": "x"}).Text()).To(Equal("X"))
			describe("Write in capitals, and tell everybody")
			notice(ctx, talk)
			expectNewConsent(talk.tryTool(ctx, "shout"))
			client.review(ctx)
		},
		Entry("after a quarter of an hour", func(_ context.Context, talk *Conversation) {
			talk.World.Clock.Advance(15 * time.Minute)
		}),
		Entry("as soon as the client has seen it in another session", func(ctx context.Context, talk *Conversation) {
			another := talk.World.Converse(ctx, sessions, talk.Access)
			Expect(another.Ask(ctx, "tools/list", params{}).Tools()).To(ContainElement("shout"))
		}),
	)
})

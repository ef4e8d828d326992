package features_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

func bindingTools(config *service.Config) { config.Gateway.BindTools = true }

// AddTool adds a tool, or replaces the one of this name.
func (u *UpstreamServer) AddTool(name, description string) {
	u.tools.AddTool(&mcp.Tool{Name: name, Description: description, InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return textual(description), nil
		})
}

func (u *UpstreamServer) called(tool string) bool {
	return strings.Contains(u.Wire(), `"name":"`+tool+`"`)
}

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

var _ = Describe("Tools as the client got them first", Label("G23"), func() {
	var upstream *UpstreamServer
	var world *World
	var client *Client
	var talk *Conversation
	list := func(ctx context.Context) []string { return talk.Ask(ctx, "tools/list", params{}).Tools() }
	connect := func(ctx context.Context, revision string) Tokens {
		tokens := client.Connect(ctx)
		talk = world.Converse(ctx, revision, tokens.Access)
		list(ctx)
		return tokens
	}
	BeforeEach(func() {
		upstream = NewUpstream(apiKey)
		upstream.AddTool("note", "Write a note")
		world = NewGateway(upstream.URL+"/mcp", bindingTools)
		client = world.NewClient()
	})

	DescribeTable("are called while they are unchanged, and no others, in revision",
		func(ctx SpecContext, revision string) {
			connect(ctx, revision)
			Expect(talk.Use(ctx, "note", params{}).Text()).To(Equal("Write a note"))
			upstream.AddTool("note", "Write a note, and tell everybody")
			upstream.AddTool("erase", "Erase everything")
			Expect(
				list(ctx),
			).To(And(ContainElement("shout"), Not(ContainElement("note")), Not(ContainElement("erase"))))
			expectNewConsent(talk.tryTool(ctx, "note"))
			expectNewConsent(talk.tryTool(ctx, "erase"))
			expectNewConsent(talk.tryTool(ctx, "hidden"))
			Expect(upstream.called("erase")).To(BeFalse())
			Expect(talk.Use(ctx, "shout", params{"text": "x"}).Text()).To(Equal("X"), "another tool")
			Expect(
				world.Log.String(),
			).To(MatchRegexp(`"new":\["erase"\],"changed":\["note"\],"gone":null,"rule":"G23"`))
			upstream.AddTool("note", "Write a note")
			Expect(list(ctx)).To(ContainElement("note"))
			Expect(talk.Use(ctx, "note", params{}).Text()).To(Equal("Write a note"), "as it was")
		}, revisions(batching, headers, sessions, stateless))

	It("are all that the server has until the client gets a list", func(ctx SpecContext) {
		talk = world.Converse(ctx, stateless, client.Connect(ctx).Access)
		Expect(talk.Use(ctx, "note", params{}).Text()).To(Equal("Write a note"))
		Expect(list(ctx)).To(ContainElement("note"))
	})

	It("may be on several pages of the list", func(ctx SpecContext) {
		upstream = NewUpstreamOf(&mcp.ServerOptions{PageSize: 2})
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			upstream.AddTool(name, name)
		}
		world = NewGateway(upstream.URL+"/mcp", bindingTools)
		client = world.NewClient()
		talk = world.Converse(ctx, stateless, client.Connect(ctx).Access)
		Expect(everyPage(ctx, talk, "tools/list", "tools", "name")).To(ContainElements("a", "e"))
		upstream.AddTool("f", "f")
		Expect(everyPage(ctx, talk, "tools/list", "tools", "name")).To(And(ContainElements("a", "e"),
			Not(ContainElement("f"))))
		Expect(talk.tryTool(ctx, "a").StatusCode).To(Equal(http.StatusOK))
		expectNewConsent(talk.tryTool(ctx, "f"))
	})

	It("keep what they were through refreshes and on every replica", Label("replicas"), func(ctx SpecContext) {
		tokens := connect(ctx, stateless)
		upstream.AddTool("note", "Write a note, and tell everybody")
		list(ctx)
		tokens = client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
		for _, at := range []*World{world, world.Replica().World} {
			talk := at.Converse(ctx, stateless, tokens.Access)
			expectNewConsent(talk.tryTool(ctx, "note"))
			Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).NotTo(ContainElement("note"))
			Expect(talk.Use(ctx, "shout", params{"text": "x"}).Text()).To(Equal("X"))
		}
	})

	It("asks for the scopes of the call, so that one more consent is enough", Label("G10"), func(ctx SpecContext) {
		world = NewGateway(upstream.URL+"/mcp", bindingTools, func(c *service.Config) {
			c.Gateway.ToolScopes = []service.ToolScope{{Pattern: "note", Scopes: []string{"mcp"}}}
		})
		client = world.NewClient()
		connect(ctx, stateless)
		upstream.AddTool("note", "Write a note, and tell everybody")
		list(ctx)
		refused := talk.tryTool(ctx, "note")
		Expect(refused.Header.Get("WWW-Authenticate")).To(And(ContainSubstring("has changed since"),
			ContainSubstring(`scope="mcp"`)))
	})

	// answer makes the upstream answer each list with these tools, which may be no JSON of MCP.
	answer := func(tools string) {
		upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
			var sent struct{ ID json.RawMessage }
			_ = json.NewDecoder(r.Body).Decode(&sent)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(sent.ID) + `,"result":{"tools":[` + tools + `]}}`))
		})
	}

	DescribeTable(
		"are compared by what parsers and people go by:",
		func(ctx SpecContext, first, second string, isSame bool) {
			talk = world.Converse(ctx, stateless, client.Connect(ctx).Access)
			answer(first)
			Expect(list(ctx)).To(Equal([]string{"a"}))
			answer(second)
			if isSame {
				Expect(list(ctx)).To(Equal([]string{"a"}))
			} else {
				Expect(list(ctx)).To(BeEmpty())
			}
		},
		Entry(
			"another order of members, of required ones, of values and types",
			`{"name":"a","inputSchema":{"required":["x","y"],"properties":{"x":{"type":["a","b"],"enum":[1,"b"]}}}}`,
			`{"inputSchema":{"properties":{"x":{"enum":["b",1],"type":["b","a"]}},"required":["y","x"]},"name":"a"}`,
			true,
		),
		Entry("another spelling of a text", `{"name":"a","title":"\u0041"}`, `{"name":"a","title":"A"}`, true),
		Entry(
			"another description",
			`{"name":"a","description":"on 1 May"}`,
			`{"name":"a","description":"on 2 May"}`,
			false,
		),
		Entry("a second tool of the name", `{"name":"a"}`, `{"name":"a"},{"name":"a","title":"b"}`, false),
		Entry("a name in another case, which some parsers read", `{"name":"a"}`, `{"Name":"a"}`, false),
	)

	It("pass on no list with two readings", func(ctx SpecContext) {
		talk = world.Converse(ctx, stateless, client.Connect(ctx).Access)
		answer(`{"name":"a","name":"b"}`)
		Expect(talk.Ask(ctx, "tools/list", params{}).Error.Code).To(Equal(-32000))
	})

	It("are seen by the person who approves again", Label("B26"), func(ctx SpecContext) {
		connect(ctx, stateless)
		Expect(
			client.Consent(ctx).Approve(ctx, world.Token).StatusCode,
		).To(Equal(http.StatusSeeOther), "nothing has changed")
		upstream.AddTool("note", "Write a note, and tell everybody")
		upstream.AddTool("erase", "Erase everything")
		upstream.tools.RemoveTools("hang")
		list(ctx)
		page := client.review(ctx)
		Expect(page.Text).To(MatchRegexp(`(?s)<h2 id="new">New</h2>.*<bdi>erase</bdi>.*` +
			`<h2 id="changed">Changed[^<]+</h2>.*<bdi>note</bdi>.*<h2 id="gone">Gone[^<]+</h2>.*<bdi>hang</bdi>`))
		Expect(
			page.Text,
		).NotTo(Or(ContainSubstring(world.Token), ContainSubstring(apiKey), ContainSubstring("<script")))
		old := talk
		tokens := client.exchangeFrom(ctx, page.Submit(ctx, url.Values{"decision": {"approve"}}))
		talk = world.Converse(ctx, stateless, tokens.Access)
		Expect(list(ctx)).To(ContainElements("note", "erase"))
		Expect(talk.Use(ctx, "note", params{}).Text()).To(Equal("Write a note, and tell everybody"))
		expectNewConsent(old.tryTool(ctx, "note"))
		Expect(client.Consent(ctx).Approve(ctx, world.Token).StatusCode).To(Equal(http.StatusSeeOther),
			"nothing has changed since")
		Expect(world.NewClient().Connect(ctx).Access).NotTo(BeEmpty(), "another client")
	})

	It("are shown again when they change after the page", Label("B26"), func(ctx SpecContext) {
		connect(ctx, stateless)
		upstream.AddTool("erase", "Erase a note")
		list(ctx)
		page := client.review(ctx)
		upstream.AddTool("wipe", "Erase everything")
		list(ctx)
		again := ReadPage(page.Submit(ctx, url.Values{"decision": {"approve"}}))
		Expect(again.StatusCode).To(Equal(http.StatusOK))
		Expect(again.Text).To(ContainSubstring("wipe"))
		Expect(again.Submit(ctx, url.Values{"decision": {"approve"}}).StatusCode).To(Equal(http.StatusSeeOther))
	})

	It("take the page of one form for no other, and no text of one's own", Label("B26", "B4"), func(ctx SpecContext) {
		connect(ctx, stateless)
		upstream.AddTool("erase", "Erase a note")
		list(ctx)
		page, other := client.review(ctx), client.review(ctx)
		other.Hidden["reviewed"] = page.Hidden["reviewed"]
		Expect(other.Submit(ctx, url.Values{"decision": {"approve"}}).StatusCode).To(Equal(http.StatusBadRequest))
		page.Hidden.Set("reviewed", rand.Text())
		Expect(page.Submit(ctx, url.Values{"decision": {"approve"}}).StatusCode).To(Equal(http.StatusBadRequest))
	})

	It("are not compared by default", func(ctx SpecContext) {
		world = NewGateway(upstream.URL + "/mcp")
		client = world.NewClient()
		connect(ctx, stateless)
		upstream.AddTool("note", "Write a note, and tell everybody")
		list(ctx)
		Expect(talk.Use(ctx, "note", params{}).Text()).To(Equal("Write a note, and tell everybody"))
	})

	It("are those of a program over stdio too", Label("U22"), func(ctx SpecContext) {
		manual := filepath.Join(GinkgoT().TempDir(), "manual")
		describe := func(text string) { Expect(os.WriteFile(manual, []byte(text), 0o600)).To(Succeed()) }
		describe("Write in capitals")
		world = openProgram(ctx, []string{manual}, bindingTools)
		client = world.NewClient()
		connect(ctx, sessions)
		Expect(talk.Use(ctx, "shout", params{"text": "x"}).Text()).To(Equal("X"))
		describe("Write in capitals, and tell everybody")
		another := world.Converse(ctx, sessions, talk.Access)
		Expect(another.Ask(ctx, "tools/list", params{}).Tools()).NotTo(ContainElement("shout"))
		expectNewConsent(talk.tryTool(ctx, "shout"))
		client.review(ctx)
	})
})

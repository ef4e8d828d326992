package features_test

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// BeChallenged matches the response to a request without a valid token; code is "" if the request
// had no token.
func BeChallenged(world *World, code string) types.GomegaMatcher {
	challenge := `Bearer resource_metadata="` + world.Issuer + `/.well-known/oauth-protected-resource/mcp"`
	if code != "" {
		challenge += `, error="` + code + `", error_description="The access token is invalid or has expired"`
	}
	return And(
		HaveField("StatusCode", http.StatusUnauthorized),
		HaveField("Header", HaveKeyWithValue("Www-Authenticate", []string{challenge + `, scope="mcp"`})),
		HaveField("Header", HaveKeyWithValue("Cache-Control", []string{"no-store"})),
		HaveField("Header", Not(HaveKey("Mcp-Session-Id"))),
	)
}

func with(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

var _ = Describe("MCP transports", Label("MCP transports"), func() {
	world := EachWorld()
	client := world.EachClient()

	DescribeTableSubtree("revision", func(revision string) {
		It("lists the tools", func(ctx SpecContext) {
			talk := world.Converse(ctx, revision, client.Connect(ctx).Access)
			Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(editorTools))
		})

		It("calls tools", func(ctx SpecContext) {
			talk := world.Converse(ctx, revision, client.Connect(ctx).Access)
			slug := talk.Use(ctx, "create_article", params{"title": "Written over " + revision}).Slug()
			Expect(talk.Use(ctx, "list_articles", params{}).Text()).
				To(And(ContainSubstring(slug), ContainSubstring("Written over "+revision)))
		})
	}, revisions())

	It("sends the message endpoint as the first event of a stream", Label("MCP "+httpSSE), func(ctx SpecContext) {
		listener := &Conversation{World: world, Revision: httpSSE, Access: client.Connect(ctx).Access}
		stream := listener.Listen(ctx)
		Expect(stream.Header.Get("Cache-Control")).To(ContainSubstring("no-cache"))
		Expect(stream.Next("endpoint")).To(MatchRegexp(`^/mcp/message\?sessionid=[\w.-]{49}$`))
	})

	It("accepts pages of its own origin and exposes the headers that they need",
		Label("G1", "G2"), func(ctx SpecContext) {
			talk := world.Talk(stateless, client.Connect(ctx).Access)
			answer := talk.Post(ctx, "tools/list", params{}, with("Origin", world.Issuer))
			Expect(answer.StatusCode).To(Equal(http.StatusOK))
			Expect(answer.Header.Get("Access-Control-Allow-Origin")).To(Equal(world.Issuer))
			Expect(answer.Header.Get("Access-Control-Expose-Headers")).To(ContainSubstring("WWW-Authenticate"))
		})

	DescribeTable("refuses", func(ctx SpecContext, status int, revision, method string, change func(*http.Request)) {
		talk := world.Talk(revision, client.Connect(ctx).Access)
		r := talk.Request(ctx, method)
		if method == http.MethodPost {
			r = talk.message(ctx, "tools/list", params{})
		}
		change(r)
		Expect(Send(r).StatusCode).To(Equal(status))
	},
		Entry("a stream that the client does not accept", http.StatusNotAcceptable, httpSSE, "GET",
			with("Accept", "application/json")),
		Entry("a message outside of a session", http.StatusBadRequest, sessions, "POST",
			with("Accept", "application/json, text/event-stream")),
		Entry("a session that does not exist", http.StatusNotFound, sessions, "POST",
			with("Mcp-Session-Id", "unknown")),
		Entry("a stream in a revision without sessions", http.StatusMethodNotAllowed, stateless, "GET",
			with("Accept", "text/event-stream")),
		Entry("a DELETE in a revision without sessions", http.StatusMethodNotAllowed, stateless, "DELETE",
			with("Accept", "*/*")),
		Entry("an unknown revision", http.StatusBadRequest, stateless, "POST",
			with("MCP-Protocol-Version", "2099-01-01")),
	)
})

var _ = Describe("A session", Label("MCP transports", "G14"), func() {
	world := EachWorld()
	client := world.EachClient()

	DescribeTableSubtree("of revision", func(revision string) {
		It("cannot be used with another person's token", func(ctx SpecContext) {
			talk := world.Converse(ctx, revision, client.Connect(ctx).Access)
			intruder := *talk
			intruder.Access = client.ConnectAs(ctx, world.TokenFor(ctx, "mallory", demosite.Editor)).Access

			answer := intruder.Post(ctx, "tools/call",
				params{"name": "create_article", "arguments": params{"title": "Smuggled"}})
			Expect(answer.StatusCode).To(Equal(http.StatusNotFound))
			Expect(talk.Use(ctx, "list_articles", params{}).Text()).NotTo(ContainSubstring("Smuggled"))
		})

		It("cannot be used with a token of the same person in another client", func(ctx SpecContext) {
			talk := world.Converse(ctx, revision, client.Connect(ctx).Access)
			twin := *talk
			twin.Access = world.NewClient().Connect(ctx).Access
			Expect(twin.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
		})

		It("continues after a refresh", func(ctx SpecContext) {
			tokens := client.Connect(ctx)
			talk := world.Converse(ctx, revision, tokens.Access)
			world.Clock.Advance(time.Hour)
			Expect(talk.Post(ctx, "tools/list", params{})).To(BeChallenged(world, "invalid_token"))

			talk.Access = client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens().Access
			Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(editorTools))
		})
	}, revisions(httpSSE, batching, headers, sessions))

	DescribeTableSubtree("of revision", func(revision string) {
		It("ends with DELETE", func(ctx SpecContext) {
			talk := world.Converse(ctx, revision, client.Connect(ctx).Access)
			stream := talk.Listen(ctx)
			Expect(Send(talk.Request(ctx, http.MethodDelete)).StatusCode).To(Equal(http.StatusNoContent))
			Eventually(stream.Events).WithTimeout(patience).Should(BeClosed())
			Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
		})

		It("cannot be ended by another client", func(ctx SpecContext) {
			talk := world.Converse(ctx, revision, client.Connect(ctx).Access)
			intruder := *talk
			intruder.Access = world.NewClient().Connect(ctx).Access
			Expect(Send(intruder.Request(ctx, http.MethodDelete)).StatusCode).To(Equal(http.StatusNotFound))
			Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(editorTools))
		})
	}, revisions(batching, headers, sessions))

	It("ends with its stream", Label("MCP "+httpSSE), func(ctx SpecContext) {
		talk := world.Converse(ctx, httpSSE, client.Connect(ctx).Access)
		Expect(talk.stream.Body.Close()).To(Succeed())
		Eventually(func() int {
			return talk.Post(ctx, "ping", params{}).StatusCode
		}).WithTimeout(patience).Should(Equal(http.StatusNotFound))
	})
})

var _ = Describe("A stream", Label("G16"), func() {
	world := EachWorld(func(config *service.Config) { config.AccessTokenTTL = time.Minute })
	client := world.EachClient()

	DescribeTableSubtree("in revision", func(revision string) {
		// listen returns an established stream.
		listen := func(ctx context.Context, access string) *Stream {
			GinkgoHelper()
			talk := world.Converse(ctx, revision, access)
			stream := talk.Listen(ctx)
			Expect(talk.Ask(ctx, "tools/list", params{}).Error.Message).To(BeEmpty())
			Expect(stream.Events).NotTo(BeClosed())
			return stream
		}

		It("ends when the client revokes its refresh token", Label("E6", "E9"), func(ctx SpecContext) {
			tokens := client.Connect(ctx)
			stream := listen(ctx, tokens.Access)
			Expect(client.Revoke(ctx, tokens.Refresh).StatusCode).To(Equal(http.StatusOK))
			Eventually(stream.Events).WithTimeout(patience).Should(BeClosed())
			Expect(world.Call(ctx, tokens.Access)).To(BeChallenged(world, "invalid_token"))
		})

		It("ends when the site revokes the person's token, without affecting other people",
			Label("J10"), func(ctx SpecContext) {
				token := world.TokenFor(ctx, "ada", demosite.Author)
				stream, other := listen(ctx, client.ConnectAs(ctx, token).Access),
					listen(ctx, client.Connect(ctx).Access)
				Expect(world.EndGrantsOf(ctx, token)).To(Equal(1))
				Eventually(stream.Events).WithTimeout(patience).Should(BeClosed())
				Expect(other.Events).NotTo(BeClosed())
			})

		It("ends when the access token expires", func(ctx SpecContext) {
			tokens := client.Connect(ctx)
			world.Clock.Advance(time.Minute - 1500*time.Millisecond)
			Eventually(listen(ctx, tokens.Access).Events).WithTimeout(patience).Should(BeClosed())
			Expect(world.Call(ctx, tokens.Access)).To(BeChallenged(world, "invalid_token"))
		})
	}, revisions(httpSSE, batching, sessions))
})

// The tools of each role of the demo site.
var (
	readerTools = []string{"list_articles", "get_article"}
	authorTools = append([]string{"create_article"}, readerTools...)
	editorTools = append([]string{"delete_article"}, authorTools...)
)

func (w *World) TokenFor(_ context.Context, owner string, role demosite.Role) string {
	GinkgoHelper()
	return must(w.Site().IssueToken(owner, role))
}

// ConnectAs runs a whole code flow with this host token.
func (c *Client) ConnectAs(ctx context.Context, hostToken string) Tokens {
	GinkgoHelper()
	approved := c.Consent(ctx).Approve(ctx, hostToken)
	Expect(approved.StatusCode).To(Equal(http.StatusSeeOther), approved.Text)
	answer := c.Token(ctx, c.Exchange(approved.Target().Query().Get("code")))
	Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
	return answer.Tokens()
}

var _ = Describe("Roles", Label("roles"), func() {
	world := EachWorld()
	client := world.EachClient()
	as := func(ctx context.Context, role demosite.Role, revision string) *Conversation {
		GinkgoHelper()
		return world.Converse(ctx, revision,
			client.ConnectAs(ctx, world.TokenFor(ctx, string(role)+" ada", role)).Access)
	}

	DescribeTableSubtree("in revision", func(revision string) {
		DescribeTable("lists only the tools of the role", func(ctx SpecContext, role demosite.Role, tools []string) {
			Expect(as(ctx, role, revision).Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(tools))
		},
			Entry("reader", demosite.Reader, readerTools),
			Entry("author", demosite.Author, authorTools),
			Entry("editor", demosite.Editor, editorTools),
		)

		DescribeTable("refuses a tool as if it did not exist",
			func(ctx SpecContext, role demosite.Role, tool string, arguments params) {
				person, editor := as(ctx, role, revision), world.Converse(ctx, revision, client.Connect(ctx).Access)
				before := editor.Use(ctx, "list_articles", params{}).Text()
				refusal := person.Use(ctx, tool, arguments).Error
				Expect(refusal.Code).To(Equal(-32602))
				Expect(refusal.Message).To(Equal(`unknown tool "` + tool + `"`))
				Expect(editor.Use(ctx, "list_articles", params{}).Text()).To(Equal(before))
			},
			Entry("when a reader calls one that writes", demosite.Reader, "create_article", params{"title": "Mine"}),
			Entry("when an author calls one that deletes", demosite.Author, "delete_article",
				params{"slug": "house-style"}),
			Entry("when the tool does not exist", demosite.Editor, "drop_tables", params{}),
		)
	}, revisions())

	It("applies the role of each token, also for tokens of the same person", func(ctx SpecContext) {
		low := world.Converse(ctx, stateless, client.ConnectAs(ctx, world.TokenFor(ctx, "ada", demosite.Reader)).Access)
		high := world.Converse(ctx, stateless,
			client.ConnectAs(ctx, world.TokenFor(ctx, "ada", demosite.Editor)).Access)
		Expect(high.Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(editorTools))
		Expect(low.Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(readerTools))
	})
})

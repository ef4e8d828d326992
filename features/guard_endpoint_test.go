package features_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

var _ = Describe("Guarding the MCP endpoint", Label("RFC 6750", "smoke", "stores"), Ordered, ContinueOnFailure, func() {
	const unknown = "ppa_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	var world *World
	var access string
	var inPlaceOf *strings.Replacer
	BeforeAll(func(ctx SpecContext) {
		world = NewWorld()
		client := world.NewClient()
		tokens := client.Connect(ctx)
		access = tokens.Access
		inPlaceOf = strings.NewReplacer("ACCESS", access, "REFRESH", tokens.Refresh, "CODE", client.Authorize(ctx))
	})
	send := func(ctx SpecContext, method, path string, header http.Header) Response {
		GinkgoHelper()
		return request(ctx, method, world.Issuer+path, header)
	}

	DescribeTable("answers a preflight without a token", Label("G2"), func(ctx SpecContext, path string) {
		answer := send(ctx, http.MethodOptions, path, http.Header{
			"Origin": {world.Issuer}, "Access-Control-Request-Headers": {"authorization, mcp-param-region, x-evil"},
		})
		Expect(answer.StatusCode).To(Equal(http.StatusNoContent))
		Expect(answer.Header.Get("Access-Control-Allow-Origin")).To(Equal(world.Issuer))
		Expect(answer.Header.Values("Vary")).To(ContainElement("Origin"))
		Expect(strings.Split(answer.Header.Get("Access-Control-Allow-Methods"), ", ")).
			To(ConsistOf("GET", "POST", "DELETE"))
		Expect(strings.Split(answer.Header.Get("Access-Control-Allow-Headers"), ", ")).
			To(ConsistOf("Authorization", "Content-Type", "Accept",
				"Last-Event-ID", "MCP-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name",
				"mcp-param-region"))
		Expect(answer.Header).NotTo(HaveKey("Access-Control-Allow-Credentials"))
	}, Entry("of the endpoint", "/mcp"), Entry("of the messages of 2024-11-05", Label("MCP "+httpSSE), "/mcp/message"))

	DescribeTable("refuses web pages", Label("G1", "G17"), func(ctx SpecContext, method, origin string) {
		answer := send(ctx, method, "/mcp", http.Header{"Origin": {origin}, "Authorization": {"Bearer " + access}})
		Expect(answer.StatusCode).To(Equal(http.StatusForbidden))
		Expect(answer.Header).
			NotTo(Or(HaveKey("Www-Authenticate"), HaveKey("Set-Cookie"), HaveKey("Access-Control-Allow-Origin")))
		Expect(answer.Text).NotTo(ContainSubstring("evil"))
	},
		Entry("of another site", "GET", "https://evil.example"),
		Entry("with a null origin", "POST", "null"),
		Entry("of a site with the same prefix", "POST", "http://127.0.0.1.evil.example"),
		Entry("of this host at another port", "DELETE", "http://127.0.0.1:1"),
		Entry("with a blank origin", "GET", " "),
	)

	DescribeTable("responds in the same way to a token",
		Label("G7", "G12", "G17"), func(ctx SpecContext, method, token string) {
			answer := send(ctx, method, "/mcp", http.Header{"Authorization": {"Bearer " + inPlaceOf.Replace(token)}})
			Expect(answer).To(BeChallenged(world, "invalid_token"))
			Expect(slices.Collect(maps.Keys(answer.Header))).
				To(ConsistOf("Cache-Control", "Content-Length", "Content-Type", "Date", "Vary",
					"Www-Authenticate", "X-Request-Id"), "nothing that tells one reason from another")
			if method != http.MethodHead {
				Expect(decode(answer)).To(Equal(params{"error": "invalid_token",
					"error_description": "The access token is invalid or has expired"}))
			}
		},
		Entry("that was not issued", "POST", unknown),
		Entry("that was not issued, on HEAD", Label("G13"), "HEAD", unknown),
		Entry("that is too long", Label("G6"), "GET", "ACCESSA"),
		Entry("twice", Label("G6"), "GET", "ACCESS ACCESS"),
		Entry("in a list", Label("G6"), "GET", "ACCESS,ACCESS"),
		Entry("of 513 bytes", Label("G6"), "GET", "ppa_"+strings.Repeat("A", 509)),
		Entry("beyond ASCII", Label("G6"), "GET", "ppa_äöü"),
		Entry("that is for refreshes", Label("G6", "H1"), "POST", "REFRESH"),
		Entry("that is a code", Label("G6", "H1"), "POST", "CODE"),
		Entry("that is the site's own", Label("G9"), "GET", editorToken),
	)

	DescribeTable("requires a token when the request has",
		Label("G3", "G12", "G17"), func(ctx SpecContext, path string, header http.Header) {
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
				answer := send(ctx, method, path, header)
				Expect(answer).To(And(BeChallenged(world, ""), HaveField("Text", BeEmpty())), method)
				Expect(answer.Header).NotTo(Or(HaveKey("Set-Cookie"), HaveKey("Content-Type")), method)
			}
		},
		Entry("no header", Label("G13"), "/mcp", nil),
		Entry("an empty header", Label("G4"), "/mcp", http.Header{"Authorization": {""}}),
		Entry("a scheme with the same prefix", Label("G4"), "/mcp",
			http.Header{"Authorization": {"BearerX " + unknown}}),
		Entry("DPoP", Label("G4"), "/mcp", http.Header{"Authorization": {"DPoP " + unknown}}),
		Entry("Basic", Label("G4"), "/mcp", http.Header{"Authorization": {"Basic eDp5"}}),
		Entry("a token in the query", Label("G5"), "/mcp?access_token="+unknown, nil),
		Entry("a cookie", "/mcp", http.Header{"Cookie": {"access_token=" + unknown}}),
	)

	DescribeTable("refuses several credentials",
		Label("G5", "G12", "G17"), func(ctx SpecContext, query string, credentials ...string) {
			for i := range credentials {
				credentials[i] = strings.Replace(credentials[i], "ACCESS", access, 1)
			}
			answer := send(ctx, http.MethodGet, "/mcp"+query, http.Header{"Authorization": credentials})
			Expect(answer.StatusCode).To(Equal(http.StatusBadRequest))
			Expect(answer.Header.Values("WWW-Authenticate")).To(ConsistOf(MatchRegexp(
				`^Bearer resource_metadata="` + world.Issuer +
					`/\.well-known/oauth-protected-resource/mcp", error="invalid_request", ` +
					`error_description="[^"\\=]+"$`)))
		},
		Entry("the same token twice", "", "Bearer ACCESS", "Bearer ACCESS"),
		Entry("one of them Basic", "", "Bearer ACCESS", "Basic eDp5"),
		Entry("one in the query", "?access_token=x", "Bearer ACCESS"),
		Entry("one in a query that is malformed", "?access_token=x%", "Bearer ACCESS"),
	)

	It("passes a caller without tokens to tools, and never reveals the site's token",
		Label("J13", "G14"), func(ctx SpecContext) {
			talk := world.Converse(ctx, stateless, access)
			var answers []string
			for _, tool := range editorTools {
				arguments := map[string]params{"list_articles": {}, "create_article": {"title": "Whose token?"}}[tool]
				if arguments == nil {
					arguments = params{"slug": "house-style"}
				}
				answers = append(answers, string(must(json.Marshal(talk.Use(ctx, tool, arguments)))))
			}
			Expect(answers).To(HaveEach(Not(Or(ContainSubstring(world.Token), ContainSubstring(access)))))
		})

	It("refuses a token at the instant of its expiry", Label("I20", "G7"), func(ctx SpecContext) {
		world.Clock.Advance(time.Hour)
		Expect(world.Call(ctx, access)).To(BeChallenged(world, "invalid_token"))
	})
})

var _ = Describe("The Accept header of a client", Label("U22"), func() {
	worlds := map[string]func(ctx context.Context) *World{
		"a server in the process": func(context.Context) *World { return NewWorld() },
		"a program over stdio":    func(ctx context.Context) *World { return openProgram(ctx, nil) },
	}
	for where, open := range worlds {
		DescribeTable("selects the form of the answer of "+where, func(ctx SpecContext, accept []string, form string) {
			world := open(ctx)
			accepting := func(r *http.Request) {
				if r.Header.Del("Accept"); accept != nil {
					r.Header["Accept"] = accept
				}
			}
			talk := world.Talk(sessions, world.NewClient().Connect(ctx).Access)
			opened := talk.Post(ctx, "initialize", params{
				"protocolVersion": sessions, "capabilities": params{},
				"clientInfo": params{"name": "spec", "version": "1"},
			}, accepting)
			if form == "" {
				Expect(opened.StatusCode).To(Equal(http.StatusNotAcceptable))
				return
			}
			Expect(opened.StatusCode).To(Equal(http.StatusOK), opened.Text)
			talk.session = opened.Header.Get("Mcp-Session-Id")
			Expect(talk.Post(ctx, "notifications/initialized", nil, accepting).StatusCode).
				To(Equal(http.StatusAccepted))
			listed := talk.Post(ctx, "tools/list", params{}, accepting)
			for _, answer := range []Response{opened, listed} {
				Expect(answer.Header.Get("Content-Type")).To(Equal(form), answer.Text)
				if form == "application/json" {
					Expect(json.Valid([]byte(answer.Text))).To(BeTrue(), answer.Text)
				}
			}
			Expect(talk.read(listed).Tools()).NotTo(BeEmpty())
		},
			Entry("without one", nil, "text/event-stream"),
			Entry("with */*", []string{"*/*"}, "text/event-stream"),
			Entry("with a stream only", []string{"text/event-stream"}, "text/event-stream"),
			Entry("with JSON only", []string{"application/json"}, "application/json"),
			Entry("with both, in two headers", []string{"application/json", "text/event-stream"}, "text/event-stream"),
			Entry("with neither", []string{"text/html"}, ""),
		)
	}

	It("may name JSON only for a call without a session", func(ctx SpecContext) {
		world := NewWorld()
		talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		answer := talk.Post(ctx, "tools/list", params{}, with("Accept", "application/json"))
		Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
		Expect(answer.Header.Get("Content-Type")).To(Equal("application/json"))
		Expect(talk.read(answer).Tools()).NotTo(BeEmpty())
		refused := talk.Post(ctx, "subscriptions/listen", params{"notifications": params{}},
			with("Accept", "application/json"))
		Expect(refused.StatusCode).To(Equal(http.StatusNotAcceptable), "it is a stream")
	})
})

var _ = Describe("The MCP server's URL with a trailing slash", Label("MCP transports", "F13"), func() {
	worlds := []TableEntry{
		Entry("the demo site", func() *World { return NewWorld() }),
		Entry("a gateway", func() *World { return NewGateway(NewUpstream(apiKey).URL + "/mcp") }),
	}
	post := func(ctx SpecContext, world *World, access string) Response {
		r := must(http.NewRequestWithContext(ctx, http.MethodPost, world.MCP()+"/", strings.NewReader(listTools)))
		for name, value := range map[string]string{
			"Content-Type":         "application/json",
			"Accept":               "application/json, text/event-stream",
			"MCP-Protocol-Version": stateless,
			"Mcp-Method":           "tools/list",
		} {
			r.Header.Set(name, value)
		}
		if access != "" {
			r.Header.Set("Authorization", "Bearer "+access)
		}
		return Send(r)
	}

	DescribeTable("works like the URL without it, with a token for the same resource, in",
		Label("A30", "F7"), func(ctx SpecContext, open func() *World) {
			world := open()
			challenged := post(ctx, world, "")
			Expect(challenged.StatusCode).To(Equal(http.StatusUnauthorized))
			Expect(challenged.Header.Values("WWW-Authenticate")).To(ConsistOf(
				ContainSubstring(`resource_metadata="` + world.Issuer + `/.well-known/oauth-protected-resource/mcp/"`)))
			Expect(Get(ctx, world.Issuer+resourcePath+"/").Text).
				To(ContainSubstring(`"resource":"` + world.MCP() + `/"`))
			Expect(Get(ctx, world.Issuer+resourcePath).Text).To(ContainSubstring(`"resource":"` + world.MCP() + `"`))

			client := world.NewClient()
			slashed := func(v url.Values) { v.Set("resource", world.MCP()+"/") }
			form := client.Exchange(client.Authorize(ctx, slashed))
			slashed(form)
			tokens := client.Token(ctx, form).Tokens()
			Expect(post(ctx, world, tokens.Access).StatusCode).To(Equal(http.StatusOK))
			Expect(world.Call(ctx, tokens.Access).StatusCode).
				To(Equal(http.StatusOK), "both URLs are the same resource")
			Expect(Get(ctx, world.MCP()+"/other").StatusCode).To(Equal(http.StatusNotFound))
			Expect(Get(ctx, world.MCP()+"//").StatusCode).To(Equal(http.StatusNotFound))
		}, worlds)

	DescribeTable("works for the Go SDK's own client, which compares resources byte for byte, in",
		Label("N9"), func(ctx SpecContext, open func() *World) {
			world := open()
			client := world.NewSDKClient()
			session := ConnectSDK(ctx, sessions, &mcp.StreamableClientTransport{
				Endpoint: world.MCP() + "/", OAuthHandler: client, HTTPClient: &http.Client{Transport: &client.Wire},
			})
			Expect(must(session.ListTools(ctx, nil)).Tools).NotTo(BeEmpty())
			Expect(client.Wire.TokenRequests()).
				To(ConsistOf(HaveField("Form", HaveKeyWithValue("resource", []string{world.MCP() + "/"}))))
		}, worlds)

	It("continues a session that was opened without it", Label("G14"), func(ctx SpecContext) {
		world := NewWorld()
		talk := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
		talk.target = world.MCP() + "/"
		Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).NotTo(BeEmpty())
	})

	It("passes the checks of doctor in both spellings", Label("doctor"), func(ctx SpecContext) {
		world := NewWorld()
		for _, address := range []string{world.MCP(), world.MCP() + "/"} {
			d := Diagnose(ctx, address, "--timeout", patience.String())
			Expect(d.With("failed")).To(BeEmpty(), d.Out)
		}
	})
})

var _ = Describe("A proxy that removes the path of the issuer", func() {
	It("is named to the client that gets 404", func(ctx SpecContext) {
		world := NewWorld(func(config *service.Config) { config.Issuer += "/auth" })
		said := ContainSubstring("a proxy has removed /auth from the path of this request")
		Expect(Get(ctx, world.Issuer+"/oauth/authorize").Text).To(said)
		Expect(Get(ctx, world.Issuer+"/mcp").Text).To(said)
		Expect(Get(ctx, world.Issuer+"/elsewhere").Text).NotTo(said)
	})
})

var _ = Describe("An app with the wrong URL", Label("MCP transports", "gateway"), func() {
	DescribeTable("gets the URLs of the MCP servers with", func(ctx SpecContext, method, path string, status int) {
		upstream := NewUpstream(apiKey).URL + "/mcp"
		world := NewGateway(upstream, func(c *service.Config) {
			c.Gateway.Upstreams = append(c.Gateway.Upstreams, serverAt("/files", upstream))
		})
		r := must(http.NewRequestWithContext(ctx, method, world.Issuer+path, strings.NewReader(listTools)))
		r.Header.Set("Content-Type", "application/json")
		answer := Send(r)
		Expect(answer.StatusCode).To(Equal(status), answer.Text)
		named := ContainSubstring("connect to " + world.Issuer + "/mcp or " + world.Issuer + "/files")
		if status != http.StatusNotFound {
			named = Not(named)
		}
		Expect(answer.Text).To(named)
	},
		Entry("another path", http.MethodPost, "/mpc", http.StatusNotFound),
		Entry("no path", http.MethodPost, "", http.StatusNotFound),
		Entry("a path of HTTP+SSE", http.MethodGet, "/sse", http.StatusNotFound),
		Entry("another path, to end a session", http.MethodDelete, "/files2", http.StatusNotFound),
		Entry("but not with a server's URL", http.MethodPost, "/files", http.StatusUnauthorized),
		Entry("but not with another method at a server's URL", http.MethodPut, "/mcp", http.StatusMethodNotAllowed),
	)
})

package features_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
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
			answer := send(ctx, method, "/mcp",
				http.Header{"Authorization": {"Bearer " + inPlaceOf.Replace(token)}})
			Expect(answer).To(BeChallenged(world, "invalid_token"))
			Expect(slices.Collect(maps.Keys(answer.Header))).
				To(ConsistOf("Cache-Control", "Content-Length", "Content-Type", "Date", "Vary",
					"Www-Authenticate", "X-Request-Id"), "nothing that tells one reason from another")
			if method != http.MethodHead {
				Expect(decode(answer)).
					To(Equal(params{"error": "invalid_token",
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
				answer, err := json.Marshal(talk.Use(ctx, tool, arguments))
				Expect(err).NotTo(HaveOccurred())
				answers = append(answers, string(answer))
			}
			Expect(answers).To(HaveEach(Not(Or(ContainSubstring(world.Token), ContainSubstring(access)))))
		})

	It("refuses a token at the instant of its expiry", Label("I20", "G7"), func(ctx SpecContext) {
		world.Clock.Advance(time.Hour)
		Expect(world.Call(ctx, access)).To(BeChallenged(world, "invalid_token"))
	})
})

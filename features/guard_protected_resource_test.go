package features_test

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Calling the protected MCP server", Label("RFC 6750", "RFC 9728"), func() {
	var world *World
	var challenge, invalid string
	BeforeEach(func() {
		world = NewWorld()
		metadata := `Bearer resource_metadata="` + world.Issuer + `/.well-known/oauth-protected-resource/mcp"`
		challenge = metadata + `, scope="mcp"`
		invalid = metadata + `, error="invalid_token", error_description="The access token is invalid or has expired"`
	})

	DescribeTable("without a token returns a challenge with the metadata URL",
		Label("G3", "G4"), func(ctx SpecContext, method string, header http.Header) {
			answer := request(ctx, method, world.MCP(), header)
			Expect(answer.StatusCode).To(Equal(http.StatusUnauthorized))
			Expect(answer.Header.Get("WWW-Authenticate")).To(Equal(challenge))
			Expect(answer.Header.Get("Cache-Control")).To(Equal("no-store"))
			Expect(answer.Text).To(BeEmpty())
		},
		Entry("on GET", http.MethodGet, http.Header{}),
		Entry("on POST", http.MethodPost, http.Header{}),
		Entry("on DELETE", http.MethodDelete, http.Header{}),
		Entry("with another scheme", http.MethodGet, http.Header{"Authorization": {"Basic eDp5"}}),
		Entry("with a scheme only", http.MethodGet, http.Header{"Authorization": {"Bearer"}}),
	)

	DescribeTable("with an invalid token returns the same response",
		func(ctx SpecContext, token func(SpecContext, *Client) string) {
			client := world.NewClient()
			answer := world.Call(ctx, token(ctx, client))
			Expect(answer.StatusCode).To(Equal(http.StatusUnauthorized))
			Expect(answer.Header.Get("WWW-Authenticate")).To(HavePrefix(invalid))
			Expect(answer.Tokens()).
				To(Equal(Tokens{Error: "invalid_token", Description: "The access token is invalid or has expired"}))
		},
		Entry("when it is unknown", Label("G7"), func(SpecContext, *Client) string {
			return "ppa_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
		}),
		Entry("when it has expired", Label("G7", "I20"), func(ctx SpecContext, c *Client) string {
			token := c.Connect(ctx).Access
			world.Clock.Advance(time.Hour)
			return token
		}),
		Entry("when it is a refresh token", Label("G7"), func(ctx SpecContext, c *Client) string {
			return c.Connect(ctx).Refresh
		}),
		Entry("when it is a code", Label("G7"), func(ctx SpecContext, c *Client) string { return c.Authorize(ctx) }),
		Entry("when it is the site's own token", Label("G9"), func(SpecContext, *Client) string { return world.Token }),
		Entry("when it is malformed", Label("G6"), func(SpecContext, *Client) string { return "päß" }),
	)

	It("refuses several credentials", Label("G5"), func(ctx SpecContext) {
		token := world.NewClient().Connect(ctx).Access
		twice := request(ctx, http.MethodGet, world.MCP(),
			http.Header{"Authorization": {"Bearer " + token, "Bearer " + token}})
		Expect(twice.StatusCode).To(Equal(http.StatusBadRequest))
		Expect(twice.Header.Get("WWW-Authenticate")).To(ContainSubstring(`error="invalid_request"`))
		both := request(ctx, http.MethodGet, world.MCP()+"?access_token="+token,
			http.Header{"Authorization": {"Bearer " + token}})
		Expect(both.StatusCode).To(Equal(http.StatusBadRequest))
		query := request(ctx, http.MethodGet, world.MCP()+"?access_token="+token, nil)
		Expect(query.StatusCode).To(Equal(http.StatusUnauthorized))
		Expect(query.Header.Get("WWW-Authenticate")).To(Equal(challenge))
	})
})

package features_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Tracing an address that does not match", Label("trace"), func() {
	const secret = "of-the-query"
	var operated *Operated
	BeforeEach(func() { operated = Operate() })

	// tells expects both addresses in the newest trace, without the query, and neither
	// of them in the response.
	tells := func(ctx context.Context, answer Response, path, both string) {
		GinkgoHelper()
		Expect(operated.Newest(ctx, path).Last().Reason).To(And(ContainSubstring(both), Not(ContainSubstring(secret))))
		Expect(operated.Log.String()).NotTo(ContainSubstring(secret))
		Expect(answer.Text).NotTo(Or(ContainSubstring(both), ContainSubstring(secret)))
	}

	It("shows the redirect URI that was sent and those that the client published", Label("A12"), func(ctx SpecContext) {
		client := operated.NewClient()
		request := client.Request()
		request.Set("redirect_uri", "https://client.example/callback/?key="+secret)
		tells(ctx, client.AskFor(ctx, request), "authorize client_metadata page:refused",
			"https://client.example/callback/?... was sent, expected is http://127.0.0.1/callback "+
				"or https://client.example/callback")
	})

	It("shows the redirect URI of an exchange and that of the authorization request",
		Label("D15"), func(ctx SpecContext) {
			client := operated.NewClient()
			form := client.Exchange(client.Authorize(ctx))
			form.Set("redirect_uri", "http://localhost:4321/callback?key="+secret)
			tells(ctx, client.Token(ctx, form),
				"authorize client_metadata page token_judged code_issued exchange:refused",
				"http://localhost:4321/callback?... was sent, expected is "+client.Redirect)
		})

	It("shows a redirect URI that no client may have", Label("A14"), func(ctx SpecContext) {
		client := operated.NewClient()
		request := client.Request()
		request.Set("redirect_uri", "http://client.example/callback?key="+secret)
		tells(ctx, client.AskFor(ctx, request), "authorize client_metadata page:refused",
			"http://client.example/callback?...")
	})

	It("shows the client_id of a document and the URL that it was fetched from", Label("C23"), func(ctx SpecContext) {
		client := operated.ClientWith("client_id", "https://other.example/c.json")
		tells(ctx, client.AskFor(ctx, client.Request()), "authorize client_metadata:refused",
			`it is "https://other.example/c.json", fetched was "`+client.ID+`"`)
	})

	It("shows the resource that was requested and the one of this server", Label("A30"), func(ctx SpecContext) {
		client := operated.NewClient()
		request := client.Request()
		request.Set("resource", operated.Issuer+"/other?key="+secret)
		tells(ctx, client.AskFor(ctx, request), "authorize client_metadata page:refused",
			operated.Issuer+"/other?... was sent, expected is "+operated.MCP())
	})
})

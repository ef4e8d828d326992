package features_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// path is the path of the client's document on its site.
func (c *Client) path() string { return strings.TrimPrefix(c.ID, c.World.Clients.URL("")) }

// ClientWith publishes a valid document with one member replaced; nil removes it.
func (w *World) ClientWith(member string, value any) *Client {
	GinkgoHelper()
	client := w.NewClient()
	members := params{"client_id": client.ID, "client_name": "Spec Client",
		"redirect_uris": []string{"http://127.0.0.1/callback"}}
	if members[member] = value; value == nil {
		delete(members, member)
	}
	document, err := json.Marshal(members)
	Expect(err).NotTo(HaveOccurred())
	w.Clients.Publish(client.path(), string(document))
	return client
}

// raw is JSON that json.Marshal passes on as it is.
func raw(text string) json.RawMessage { return json.RawMessage(text) }

// says responds with a status, a header and a body, in which ID stands for the client_id.
func (c *Client) says(status int, header http.Header, body string) {
	c.World.Clients.Serve(c.path(), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "ID", c.ID))
	})
}

var _ = Describe("Accepting client documents without a client_id", Label("CIMD", "C23"), func() {
	It("warns the person, also when the form is shown again", func(ctx SpecContext) {
		world := NewWorld(func(config *service.Config) { config.AllowDocumentsWithoutClientID = true })
		const warning = "description does not contain its own address"
		Expect(world.NewClient().Consent(ctx).Text).NotTo(ContainSubstring(warning))
		page := world.ClientWith("client_id", nil).Consent(ctx)
		Expect(page.Text).To(ContainSubstring(warning))
		Expect(page.Approve(ctx, "demo_wrong").Text).To(ContainSubstring(warning))
	})
})

var _ = Describe("Reconnecting ChatGPT, which adds a parameter to its client_id", Label("CIMD", "C23"), func() {
	const added = "?token_endpoint_auth_method=none"

	It("accepts the document of the client_id without it, and binds the tokens to the client_id as sent",
		Label("C10", "D22"), func(ctx SpecContext) {
			world := NewWorld()
			client := world.NewClient()
			bare := client.ID
			client.ID += added
			tokens := client.Connect(ctx)
			form := client.Refresh(tokens.Refresh)
			form.Set("client_id", bare)
			Expect(client.Token(ctx, form)).To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
		})

	It("accepts a document whose client_id has a query of its own", func(ctx SpecContext) {
		world := NewWorld()
		client := world.NewClient()
		client.ID += "?edition=2"
		world.Clients.Publish(strings.TrimSuffix(client.path(), "?edition=2"), client.document(client.Redirect))
		client.ID += "&token_endpoint_auth_method=none"
		Expect(client.Connect(ctx).Access).NotTo(BeEmpty())
	})

	DescribeTable("refuses any other difference", func(ctx SpecContext, change func(id string) string) {
		client := NewWorld().NewClient()
		client.ID = change(client.ID)
		Expect(client.AskFor(ctx, client.Request())).To(BeASafePage(http.StatusBadRequest, "invalid_client"))
	},
		Entry("another value", func(id string) string { return id + "?token_endpoint_auth_method=private_key_jwt" }),
		Entry("another parameter", func(id string) string { return id + "?x=1" }),
		Entry("a parameter before it", func(id string) string {
			return id + "?x=1&token_endpoint_auth_method=none"
		}),
	)

	It("refuses a document that has the parameter where the client does not send it", func(ctx SpecContext) {
		world := NewWorld()
		client := world.NewClient()
		bare := client.ID
		client.ID += added
		world.Clients.Publish(strings.TrimPrefix(bare, world.Clients.URL("")), client.document(client.Redirect))
		Expect(client.Connect(ctx).Access).NotTo(BeEmpty())
		client.ID = bare
		Expect(client.AskFor(ctx, client.Request())).To(BeASafePage(http.StatusBadRequest, "invalid_client"))
	})
})

var _ = Describe("Reading client metadata documents", Label("CIMD"), Ordered, ContinueOnFailure, func() {
	const good = `{"client_id":"ID","client_name":"Spec Client","redirect_uris":["http://127.0.0.1/callback"]}`
	var world *World
	BeforeAll(func() { world = NewWorld() })
	BeforeEach(func() { world.Clock.Advance(time.Minute) }) // refills the fetch budget

	DescribeTable("refuses a document", Label("A9", "C43"), func(ctx SpecContext, member string, value any) {
		client := world.ClientWith(member, value)
		Expect(client.AskFor(ctx, client.Request())).To(BeASafePage(http.StatusBadRequest, "invalid_client"))
	},
		Entry("with another client_id", Label("C23"), "client_id", "https://other.example/c.json"),
		Entry("without a client_id", Label("C23"), "client_id", nil),
		Entry("with a client_id that is null", Label("C23"), "client_id", raw("null")),
		Entry("with a client_id that is a list", Label("C23"), "client_id", []string{"x"}),
		Entry("without a name", Label("C24", "N6"), "client_name", nil),
		Entry("with a blank name", Label("C24"), "client_name", " \u00a0\t"),
		Entry("with a name that is a number", Label("C24"), "client_name", 7),
		Entry("with a name of 201 characters", Label("C24"), "client_name", strings.Repeat("ä", 201)),
		Entry("without redirect_uris", Label("C25"), "redirect_uris", nil),
		Entry("with redirect_uris that are null", Label("C25", "N6"), "redirect_uris", raw("null")),
		Entry("with redirect_uris that are a string", Label("C25"), "redirect_uris", "http://127.0.0.1/callback"),
		Entry("with no redirect URI", Label("C25"), "redirect_uris", []string{}),
		Entry("with 51 redirect URIs", Label("C25"), "redirect_uris",
			strings.Split(strings.Repeat("https://a.example/ ", 50)+"https://a.example/", " ")),
		Entry("with a redirect URI that is null", Label("C25"), "redirect_uris",
			raw(`["http://127.0.0.1/callback",null]`)),
		Entry("with http on the web only", Label("C26", "C27"), "redirect_uris",
			[]string{"http://client.example/callback"}),
		Entry("with response parameters in its redirect URIs", Label("C26", "C27"), "redirect_uris",
			[]string{"https://a.example/?code=1", "https://a.example/?%69ss=x", "https://a.example/?a&state",
				"https://a.example/?error="}),
		Entry("with fragments in its redirect URIs", Label("A11", "C26", "C27"), "redirect_uris",
			[]string{"http://127.0.0.1/callback#", "https://a.example/#x"}),
		Entry("with users in its redirect URIs", Label("A11", "C26", "C27"), "redirect_uris",
			[]string{"http://a@127.0.0.1/callback", "https://@a.example/"}),
		Entry("with dangerous redirect URIs only", Label("A14", "C26", "C27"), "redirect_uris",
			[]string{"javascript:alert(1)", "data:text/html,x", "https://a@b.example/", "/callback"}),
		Entry("with a secret", Label("C28"), "client_secret", "s3cret"),
		Entry("with a secret that never expires", Label("C28"), "client_secret_expires_at", 0),
		Entry("that sends a secret in a header", Label("C29"), "token_endpoint_auth_method", "client_secret_basic"),
		Entry("that sends a secret in the form", Label("C29"), "token_endpoint_auth_method", "client_secret_post"),
		Entry("that signs with a secret", Label("C29"), "token_endpoint_auth_method", "client_secret_jwt"),
		Entry("with a method that is a number", Label("C30"), "token_endpoint_auth_method", 7),
		Entry("with a private key", Label("C31"), "jwks",
			raw(`{"keys":[{"kty":"EC","crv":"P-256","x":"x","y":"y","d":"d"}]}`)),
		Entry("with a symmetric key", Label("C31", "N6"), "jwks", raw(`{"keys":[{"kty":"oct","k":"k"}]}`)),
		Entry("with keys that are not a key set", Label("C31"), "jwks", raw(`[]`)),
		Entry("without the code grant", Label("C32"), "grant_types", []string{"refresh_token", "implicit"}),
		Entry("with grant types that are a string", Label("C32"), "grant_types", "authorization_code"),
		Entry("without the code response type", Label("C32"), "response_types", []string{"token"}),
		Entry("with a jwks_uri over http", Label("C33"), "jwks_uri", "http://client.example/keys"),
	)

	DescribeTable("refuses a client that needs", Label("C44"), func(ctx SpecContext, member string, value any) {
		client := world.ClientWith(member, value)
		Expect(client.AskFor(ctx, client.Request())).To(BeASafePage(http.StatusBadRequest, "unauthorized_client"))
	},
		Entry("client certificates", Label("C30"), "token_endpoint_auth_method", "tls_client_auth"),
		Entry("only unsupported methods", Label("C30"), "token_endpoint_auth_methods_supported",
			[]string{"tls_client_auth", "x"}),
		Entry("certificate-bound tokens", Label("C34"), "tls_client_certificate_bound_access_tokens", true),
		Entry("DPoP", Label("C34"), "dpop_bound_access_tokens", true),
	)

	DescribeTable("accepts", func(ctx SpecContext, member string, value any) {
		Expect(world.ClientWith(member, value).Connect(ctx).Scope).To(HavePrefix("mcp"))
	},
		Entry("a name of 200 characters", Label("C24"), "client_name", strings.Repeat("ä", 200)),
		Entry("one usable redirect URI among others", Label("C27"), "redirect_uris",
			[]string{"http://client.example/", "cursor://x", "http://127.0.0.1/callback"}),
		Entry("a method that is not the first choice", Label("C30"), "token_endpoint_auth_methods_supported",
			[]string{"private_key_jwt", "none"}),
		Entry("public keys", Label("C31"), "jwks", raw(`{"keys":[{"kty":"EC","crv":"P-256","x":"x","y":"y"}]}`)),
		Entry("additional grant types", Label("C32"), "grant_types",
			[]string{"authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:jwt-bearer"}),
		Entry("links", Label("C33"), "policy_uri#de", "https://client.example/datenschutz"),
		Entry("a secret that is null", Label("C28", "N6"), "client_secret", raw("null")),
		Entry("a jwks_uri that is null", Label("C33"), "jwks_uri", raw("null")),
		Entry("an empty logo, which it does not show", Label("C33"), "logo_uri", ""),
		Entry("terms that are null, which it does not show", Label("C33"), "tos_uri", raw("null")),
		Entry("a page over http, which it does not show", Label("C33"), "client_uri", "http://client.example/"),
		Entry("a relative policy, which it does not show", Label("C33"), "policy_uri", "/policy"),
		Entry("a Japanese page with a data URL, which it does not show", Label("C33"), "client_uri#ja-Jpan-JP",
			"data:text/html,x"),
		Entry("dpop_bound_access_tokens set to false", Label("C34"), "dpop_bound_access_tokens", false),
		Entry("unknown members", Label("C35"), "software_version", params{"a": []int{1}}),
	)

	DescribeTable("refuses a response",
		Label("A9", "N6"), func(ctx SpecContext, status int, answered int, header http.Header, body string) {
			client := world.NewClient()
			client.says(answered, header, body)
			Expect(client.AskFor(ctx, client.Request())).To(BeASafePage(status, "invalid_client"))
			client.says(http.StatusOK, nil, good)
			Expect(client.Consent(ctx).StatusCode).To(Equal(http.StatusOK), "a failure is not cached")
		},
		Entry("that redirects to another URL", Label("C12", "C42"), 502, 301,
			http.Header{"Location": {"https://client.example/c.json"}}, good),
		Entry("that redirects to the same URL", Label("C12", "C42"), 502, 307, http.Header{"Location": {"?"}}, good),
		Entry("without content", Label("C13", "C42"), 502, 204, nil, ""),
		Entry("with partial content", Label("C13", "C42"), 502, 206, nil, good),
		Entry("that is not modified", Label("C38", "C42"), 502, 304, nil, ""),
		Entry("of 404", Label("C13", "C42"), 502, 404, nil, good),
		Entry("of 500", Label("C13", "C42"), 502, 500, nil, good),
		Entry("of HTML", Label("C14", "C42"), 502, 200, http.Header{"Content-Type": {"text/html"}}, good),
		Entry("of plain text", Label("C14", "C42"), 502, 200,
			http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, good),
		Entry("that is compressed in another way", Label("C15", "C42"), 502, 200,
			http.Header{"Content-Encoding": {"br"}}, zipped(good)),
		Entry("that is too large", Label("C15", "C42"), 502, 200, nil, good+strings.Repeat(" ", 5<<10)),
		Entry("with a byte order mark", Label("C22", "C43"), 400, 200, nil, "\ufeff"+good),
		Entry("with a duplicate member", Label("C22", "C43"), 400, 200, nil,
			good[:len(good)-1]+`,"client_name":"Other"}`),
		Entry("that is not UTF-8", Label("C22", "C43"), 400, 200, nil, strings.Replace(good, "Spec", "\xff", 1)),
		Entry("with data after the document", Label("C22", "C43"), 400, 200, nil, good+"{}"),
		Entry("that nests nine levels deep", Label("C22", "C43"), 400, 200, nil,
			good[:len(good)-1]+`,"x":[[[[[[[[1]]]]]]]]}`),
		Entry("that is a list", Label("C22", "C43"), 400, 200, nil, "["+good+"]"),
		Entry("with CLIENT_ID in capitals", Label("C22", "C23", "C43"), 400, 200, nil,
			strings.Replace(good, "client_id", "CLIENT_ID", 1)),
		Entry("with the default port in its client_id", Label("C10", "C23", "C43"), 400, 200, nil,
			strings.Replace(good, `ID"`, `ID:443"`, 1)),
		Entry("that is empty", Label("C22", "C43"), 400, 200, nil, ""),
	)

	It("does not reveal why a fetch failed", Label("C41", "C17", "C18"), func(ctx SpecContext) {
		gone, stranger := httptest.NewTLSServer(http.NotFoundHandler()), httptest.NewTLSServer(http.NotFoundHandler())
		stranger.Config.ErrorLog, gone.Config.ErrorLog = nil, nil
		gone.Close()
		DeferCleanup(stranger.Close)
		var texts []string
		for _, id := range []string{gone.URL + "/c.json", stranger.URL + "/c.json", "https://10.0.0.1/c.json",
			world.Clients.URL("/none.json")} {
			answer := world.NewClient().ask(ctx, "client_id="+id)
			Expect(answer).To(BeASafePage(http.StatusBadGateway, "invalid_client"))
			host := strings.Split(id, "/")[2]
			texts = append(texts, strings.ReplaceAll(varying.ReplaceAllString(answer.Text, ""), host, ""))
		}
		Expect(texts).To(HaveEach(texts[0]))
		Expect(linesWith(world.Log.String(), "cimd_rejected")).
			To(ContainElement(ContainSubstring("prohibited IP address: 10.0.0.1")))
	})

	It("fetches the document, and no URL in it", Label("C20", "C35"), func(ctx SpecContext) {
		client, links := world.NewClient(), ""
		for _, member := range []string{"client_uri", "logo_uri", "policy_uri", "tos_uri", "jwks_uri"} {
			links += fmt.Sprintf(`,%q:%q`, member, world.Clients.URL("/"+member))
		}
		client.says(http.StatusOK, nil, good[:len(good)-1]+links+"}")
		before := world.Clients.Fetches()
		page := client.Consent(ctx)
		Expect(client.Token(ctx, client.Exchange(page.Approve(ctx, world.Token).Target().Query().Get("code"))).
			StatusCode).To(Equal(http.StatusOK))
		Expect(world.Clients.Fetches() - before).To(BeEquivalentTo(1))
		Expect(page.Text).NotTo(ContainSubstring("logo_uri"))
	})
})

// varying matches the parts that differ between two pages about the same problem.
var varying = regexp.MustCompile(`nonce="[^"]*"|<code>[A-Z2-7]{12}</code>`)

func zipped(text string) string {
	var packed strings.Builder
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return packed.String()
}

package features_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
)

var _ = Describe("Accepting what real clients send", Ordered, ContinueOnFailure, func() {
	var world *World
	BeforeAll(func() { world = NewWorld() })
	BeforeEach(func() { world.Clock.Advance(time.Minute) }) // refills the fetch budget

	DescribeTable("grants", func(ctx SpecContext, scope string, change func(url.Values)) {
		tokens := world.NewClient().Connect(ctx, change)
		Expect(tokens.Scope).To(Equal(scope))
		Expect(tokens.Refresh != "").To(Equal(strings.Contains(scope, "offline_access")))
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
	},
		Entry("the defaults for an empty scope", Label("A4", "A24"), "mcp", set("scope", "")),
		Entry("the requested scopes, with any number of spaces between them", Label("A23"), "mcp offline_access",
			set("scope", "  offline_access   mcp  mcp ")),
		Entry("all scopes with an empty response_mode", Label("A4"), "mcp offline_access", set("response_mode", "")),
		Entry("all scopes when each parameter is repeated with an empty value", Label("A4", "A5"),
			"mcp offline_access", func(v url.Values) {
				for name := range v {
					v[name] = append([]string{""}, v[name]...)
				}
			}),
		Entry("all scopes with response_mode=query", Label("A17"), "mcp offline_access", set("response_mode", "query")),
		Entry("all scopes with an empty resource", Label("A4", "A28"), "mcp offline_access", set("resource", "")),
		Entry("the resource with a slash at its end", Label("A30", "A32"), "mcp offline_access", func(v url.Values) {
			v.Set("resource", world.MCP()+"/")
		}),
		Entry("the resource with its scheme in capitals", Label("A30", "A32"),
			"mcp offline_access", func(v url.Values) {
				v.Set("resource", strings.Replace(world.MCP(), "http", "HTTP", 1))
			}),
		Entry("the resource twice", Label("A31"), "mcp offline_access", func(v url.Values) {
			v["resource"] = []string{world.MCP(), world.MCP() + "/"}
		}),
		Entry("the defaults without scope", Label("A24"), "mcp", drop("scope")),
		Entry("all scopes without resource", Label("A28"), "mcp offline_access", drop("resource")),
		Entry("a known scope beside an unknown one", Label("A25"), "mcp", set("scope", "mcp profile")),
		Entry("the defaults beside offline_access alone", Label("A25"), "mcp offline_access",
			set("scope", "offline_access")),
		Entry("all scopes without state", Label("A22"), "mcp offline_access", drop("state")),
		Entry("all scopes with unknown parameters, even repeated ones", Label("A5", "A6"),
			"mcp offline_access", func(v url.Values) {
				for _, name := range []string{"prompt", "nonce", "login_hint", "max_age", "display", "ui_locales",
					"audience", "access_type", "request", "request_uri"} {
					v[name] = []string{"login consent", "x"}
				}
			}),
	)

	It("returns the state byte for byte", Label("A22"), func(ctx SpecContext) {
		client := world.NewClient()
		for _, client.State = range []string{"ab/c+d==", strings.Repeat("{", 4096), " a b ", "a=1&code=2#iss=%41;",
			`"><script>alert(1)</script>`} {
			answer := client.Consent(ctx).Approve(ctx, world.Token)
			Expect(answer.Target().Query()["state"]).To(Equal([]string{client.State}))
		}
	})

	DescribeTable("shows a page for a state that it cannot return, and does not redirect",
		Label("A22", "A40"), func(ctx SpecContext, state, text string) {
			client := world.NewClient()
			client.State = state
			answer := client.AskFor(ctx, client.Request())
			Expect(answer).To(BeAPage(http.StatusBadRequest, "invalid_request"))
			Expect(answer.Text).To(ContainSubstring(text))
			Expect(ReadPage(answer).Action).To(BeEmpty(), "without its state, the client would reject the response")
		},
		Entry("of 4097 bytes", strings.Repeat("x", 4097), "more than 4096 characters"),
		Entry("with a line break", "x\r\ny", "not printable ASCII"),
		Entry("with a letter that is not ASCII", "ä", "not printable ASCII"),
	)

	DescribeTable("accepts any port of a loopback redirect URI",
		Label("A13"), func(ctx SpecContext, published, sent string) {
			client := world.ClientAt(published, "")
			client.Redirect = sent
			answer := client.Consent(ctx).Approve(ctx, world.Token)
			Expect(answer.Header.Get("Location")).To(HavePrefix(sent + "?code=ppc_"))
			Expect(client.Token(ctx, client.Exchange(answer.Target().Query().Get("code"))).StatusCode).
				To(Equal(http.StatusOK))
		},
		Entry("by name", "http://localhost/callback", "http://localhost:54321/callback"),
		Entry("by its IPv4 address", "http://127.0.0.1/callback", "http://127.0.0.1:65535/callback"),
		Entry("by its IPv6 address", "http://[::1]/callback", "http://[::1]:1/callback"),
	)

	It("uses the only redirect_uri that a client publishes", Label("A10"), func(ctx SpecContext) {
		client := world.ClientAt("https://client.example/only", "")
		answer := client.Consent(ctx, drop("redirect_uri")).Approve(ctx, world.Token)
		Expect(answer.Header.Get("Location")).To(HavePrefix("https://client.example/only?code="))
		form := client.Exchange(answer.Target().Query().Get("code"))
		form.Del("redirect_uri")
		Expect(client.Token(ctx, form).StatusCode).To(Equal(http.StatusOK))
	})

	DescribeTable("follows the grant types of the document",
		Label("A26"), func(ctx SpecContext, members, scope string) {
			tokens := world.ClientAt("http://127.0.0.1/callback", members).Connect(ctx)
			Expect(tokens.Scope).To(Equal(scope))
			Expect(tokens.Refresh != "").To(Equal(scope != "mcp"))
		},
		Entry("when it has none", "", "mcp offline_access"),
		Entry("when refresh_token is among them", `,"grant_types":["authorization_code","refresh_token"]`,
			"mcp offline_access"),
		Entry("when refresh_token is not among them", `,"grant_types":["authorization_code"]`, "mcp"),
	)

	It("stores nothing and sets no cookie before the person decides", Label("A34"), func(ctx SpecContext) {
		world := NewWorld() // where no last use waits for the next second
		client := world.NewClient()
		client.Connect(ctx)
		before := world.Rows(ctx)
		Expect(before).To(HaveKeyWithValue("grants", Not(BeEmpty())))
		for range 3 {
			Expect(client.Consent(ctx).Header).NotTo(HaveKey("Set-Cookie"))
		}
		Expect(world.Rows(ctx)).To(Equal(before))
	})

	It("keeps the query of a request out of the log", Label("A42"), func(ctx SpecContext) {
		client := world.NewClient()
		client.State = "a-state-that-is-not-logged"
		client.Consent(ctx).Approve(ctx, world.Token)
		client.AskFor(ctx, url.Values{"client_id": {"evil-client-id"}, "state": {client.State}})
		Expect(world.Log.String()).To(ContainSubstring("/oauth/authorize"))
		Expect(world.Log.String()).NotTo(Or(ContainSubstring(client.State), ContainSubstring(client.Challenge()),
			ContainSubstring("response_type=")))
	})

	It("shows hostile claims as harmless text", Label("A35"), func(ctx SpecContext) {
		name := `</title><script>alert(1)</script>\u202etxet desrever\u200b ` + strings.Repeat("long", 30)
		client := world.ClientWith("client_name", raw(`"`+name+`"`))
		page := client.Consent(ctx)
		Expect(page.Text).To(ContainSubstring("&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;txet desrever"))
		Expect(page.Text).NotTo(Or(ContainSubstring("<script"), ContainSubstring("\u202e"), ContainSubstring("\u200b"),
			ContainSubstring(strings.Repeat("long", 15))))
	})
})

// approvers are people who approve clients at the same time, each from an address of their own.
const approvers = 64

// tally is the number of responses by status.
type tally struct {
	mu      sync.Mutex
	answers map[int]int
}

func (t *tally) count(answer Response) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answers[answer.StatusCode]++
}

// approveAll lets each person connect a client again and again.
func (c *Client) approveAll(
	ctx context.Context, all int, tokenOf func(person int) string) (approved, exchanged *tally) {
	approved, exchanged = &tally{answers: map[int]int{}}, &tally{answers: map[int]int{}}
	fewAtOnce(approvers, approvers, func(person int) {
		token, address := tokenOf(person), forwarded(fmt.Sprintf("198.51.%d.1", person))
		for i := person; i < all; i += approvers {
			answer := c.Consent(ctx).Approve(ctx, token, address)
			approved.count(answer)
			if answer.StatusCode == http.StatusSeeOther {
				code := answer.Target().Query().Get("code")
				exchanged.count(c.Token(ctx, c.Exchange(code), address))
			}
		}
	})
	return approved, exchanged
}

// itApproves connects that many clients, with a token for each person or with one for all.
func itApproves(all int) {
	const connections = 200 // what an operator permits a token that these people share
	var world *World
	var client *Client
	BeforeEach(func() {
		world = NewWorld(behind("127.0.0.1/32"), atMostGrants(connections))
		client = world.NewClient()
	})

	DescribeTable("serves everybody", func(ctx SpecContext, tokenOf func(context.Context, int) string) {
		began := time.Now()
		approved, exchanged := client.approveAll(ctx, all, func(person int) string { return tokenOf(ctx, person) })
		AddReportEntry("approvals", fmt.Sprintf("%v, exchanges %v, in %s",
			approved.answers, exchanged.answers, time.Since(began).Round(time.Second)))
		Expect(approved.answers).To(Equal(map[int]int{http.StatusSeeOther: all}))
		Expect(exchanged.answers).To(Equal(map[int]int{http.StatusOK: all}))
		Expect(strings.Count(world.Log.String(), "cannot end the connections")).To(BeZero())
	},
		Entry("with a token for each person", NodeTimeout(30*time.Minute),
			func(ctx context.Context, person int) string {
				return world.TokenFor(ctx, fmt.Sprint("person ", person), demosite.Author)
			}),
		Entry("with one token", Label("J14", "soak"), NodeTimeout(30*time.Minute),
			func(context.Context, int) string { return world.Token }),
	)
}

var _ = Describe("Approving by 64 people at once", Label("N10", "B11", "B20", "stores"), func() {
	Context("640 times", Label("long"), func() { itApproves(640) })
	Context("20,000 times", Label("soak", "flood"), func() { itApproves(20_000) })
})

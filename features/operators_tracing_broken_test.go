package features_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// connectSDK tries to connect the official SDK's client through the front, and returns its error.
func connectSDK(ctx context.Context, f *Front) error {
	GinkgoHelper()
	wire := f.server.Client()
	client := f.world.NewClient()
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		ClientIDMetadataDocumentConfig: &auth.ClientIDMetadataDocumentConfig{URL: client.ID},
		RedirectURL:                    client.Redirect,
		Client:                         wire,
		AuthorizationCodeFetcher: func(ctx context.Context,
			args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			defer GinkgoRecover()
			page := Get(ctx, args.URL)
			if page.StatusCode != http.StatusOK { // the person gives up
				return nil, context.Canceled
			}
			back := ReadPage(page).Approve(ctx, f.world.Token).Target().Query()
			return &auth.AuthorizationResult{Code: back.Get("code"), State: back.Get("state"), Iss: back.Get("iss")},
				nil
		},
	})
	Expect(err).NotTo(HaveOccurred())
	transport := &mcp.StreamableClientTransport{Endpoint: f.URL() + "/mcp", OAuthHandler: handler, HTTPClient: wire}
	_, err = mcp.NewClient(&mcp.Implementation{Name: "spec", Version: "1"}, nil).Connect(ctx, transport, nil)
	return err
}

// throughSDK expects that the SDK's client fails to connect.
func throughSDK(ctx context.Context, f *Front) {
	GinkgoHelper()
	Expect(connectSDK(ctx, f)).NotTo(Succeed())
}

// onBoth breaks both URLs of the resource metadata.
func onBoth(spoil func(path string) func(*Front)) func(*Front) {
	return both(spoil(resourcePath), spoil(rootPath))
}

// Story is the trace of a connection as the operator sees it.
type Story struct{ Path, State, Says string }

// Stories returns all connections of the world, newest first.
func (w *World) Stories(ctx context.Context) []Story {
	GinkgoHelper()
	connections, err := w.service.Authz.Trace(ctx)
	Expect(err).NotTo(HaveOccurred())
	stories := make([]Story, 0, len(connections))
	for _, connection := range connections {
		var path []string
		for _, step := range connection.Steps {
			name := string(step.Kind)
			if step.Outcome != "ok" {
				name += ":" + string(step.Outcome)
			}
			path = append(path, name)
		}
		stories = append(stories,
			Story{strings.Join(path, " "), string(connection.State), connection.Verdict + " " + connection.Hint})
	}
	return stories
}

const (
	discovered = "challenge resource_metadata server_metadata"
	approved   = "authorize client_metadata page token_judged code_issued"
)

var _ = Describe("Tracing connections to a broken deployment", Label("trace"), func() {
	DescribeTable("names the step at which a client stops",
		func(ctx SpecContext, spoil func(*Front), connect func(context.Context, *Front), path, state, says string) {
			front := NewFront(spoil)
			connect(ctx, front)
			front.world.Clock.Advance(time.Minute) // past all timeouts of the trace
			Eventually(func() []Story {
				return front.world.Stories(ctx)
			}).WithContext(ctx).WithTimeout(patience).Should(
				ContainElement(And(HaveField("Path", path), HaveField("State", state),
					HaveField("Says", ContainSubstring(says)))))
		},
		Entry("when the issuer is http behind a proxy with TLS", httpIssuer, throughSDK, discovered+" "+discovered,
			"half way", "refuses an issuer that differs from the requested address"),
		Entry("when CORS is missing", Label("browser"), onBoth(func(path string) func(*Front) {
			return header(path, "Access-Control-Allow-Origin")
		}), throughBrowser,
			"resource_metadata", "half way", "CORS"),
		Entry("when resource has a trailing slash", onBoth(func(path string) func(*Front) {
			return rewriting(path, func(text string) string { return strings.ReplaceAll(text, `/mcp"`, `/mcp/"`) })
		}), toTheLetter, "challenge resource_metadata", "half way", "trailing slash"),
		Entry("when the metadata is behind a redirect", onBoth(func(path string) func(*Front) {
			return status("GET", path, 308, "Location", "/login")
		}), toTheLetter, "challenge", "half way", "does not reach this service"),
		Entry("when the content type of the metadata is wrong", onBoth(func(path string) func(*Front) {
			return header(path, "Content-Type", "text/plain")
		}), toTheLetter, "challenge resource_metadata", "half way", "application/json"),
		Entry("when events are buffered", buffered, throughSSE, approved+" exchange stream", "half way",
			"buffers text/event-stream"),
		Entry("when the clock is five minutes off", func(*Front) {}, func(ctx context.Context, f *Front) {
			f.world = NewWorld()
			client := f.world.NewSigningClient("ES256")
			form := client.Sign(client.Exchange(client.Authorize(ctx)))
			f.world.Clock.Advance(5*time.Minute + time.Second)
			client.Token(ctx, form)
		}, "authorize client_metadata page token_judged code_issued exchange:refused", "stopped", "clock"),
		Entry("when the host of the client's document is down", func(*Front) {}, func(ctx context.Context, f *Front) {
			f.world.Clients.server.Close()
			throughSDK(ctx, f)
		}, "authorize client_metadata:refused authorize client_metadata:refused", "stopped", "firewall"),
		Entry("when the token endpoint is not found", status("POST", "/oauth/token", 404), throughSDK, approved,
			"half way", "POST /oauth/token does not reach"),
		Entry("when the client supports dynamic registration only", func(*Front) {}, throughRegistration,
			discovered+" "+discovered, "half way", "Probably it has to register itself", Label("T3")),
		Entry("when WWW-Authenticate comes twice", changing("/mcp", func(r *http.Response) {
			r.Header.Add("WWW-Authenticate", r.Header.Get("WWW-Authenticate"))
		}), toTheLetter, "challenge", "half way", "duplicates WWW-Authenticate"),
	)

	It("reports that no client has connected when a certificate has expired, and names causes", func(ctx SpecContext) {
		front := NewFront(expired)
		throughSDK(ctx, front)
		listed := Run(ctx, append([]string{"connections"}, front.world.Kept()...)...)
		Expect(listed.Code).To(Equal(0))
		Expect(listed.Out).
			To(And(ContainSubstring("No client has reached this service"), ContainSubstring("certificate"),
				ContainSubstring("pasteport doctor")))
	})
})

// throughSSE opens an HTTP+SSE stream with a valid token and gives up when no event arrives.
func throughSSE(ctx context.Context, f *Front) {
	GinkgoHelper()
	client := f.world.NewClient()
	f.world.Call(ctx, "")
	Get(ctx, f.URL()+resourcePath)
	Get(ctx, f.URL()+serverPath)
	form := client.Exchange(client.Authorize(ctx, func(request url.Values) { request.Del("resource") }))
	form.Del("resource")
	access := client.Token(ctx, form).Tokens().Access
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	transport := &mcp.SSEClientTransport{Endpoint: f.URL() + "/mcp",
		HTTPClient: &http.Client{Transport: bearer(access)}}
	_, err := mcp.NewClient(&mcp.Implementation{Name: "spec", Version: "1"}, nil).Connect(short, transport, nil)
	Expect(err).To(MatchError(context.DeadlineExceeded))
}

// toTheLetter takes the first steps of a client that follows RFC 9110 and RFC 9728 strictly, unlike
// the official Go SDK's: one challenge, no redirect, application/json, and the requested resource.
// It stops at the first violation.
func toTheLetter(ctx context.Context, f *Front) {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.URL()+"/mcp", strings.NewReader(listTools))
	Expect(err).NotTo(HaveOccurred())
	if len(Send(r).Header.Values("WWW-Authenticate")) != 1 {
		return
	}
	document := Get(ctx, f.URL()+resourcePath)
	if document.StatusCode != http.StatusOK || document.Header.Get("Content-Type") != "application/json" ||
		!strings.Contains(document.Text, `"`+f.URL()+`/mcp"`) {
		return
	}
	Fail("the deployment is not broken")
}

// throughRegistration is the official SDK's client with dynamic registration only.
func throughRegistration(ctx context.Context, f *Front) {
	GinkgoHelper()
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{
				RedirectURIs: []string{"http://127.0.0.1:4321/callback"},
			}},
		RedirectURL: "http://127.0.0.1:4321/callback",
		AuthorizationCodeFetcher: func(context.Context, *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			return nil, context.Canceled
		},
	})
	Expect(err).NotTo(HaveOccurred())
	transport := &mcp.StreamableClientTransport{Endpoint: f.URL() + "/mcp", OAuthHandler: handler}
	_, err = mcp.NewClient(&mcp.Implementation{Name: "spec", Version: "1"}, nil).Connect(ctx, transport, nil)
	Expect(err).To(HaveOccurred())
}

// throughBrowser reads the metadata from a page of another origin in a real browser.
func throughBrowser(ctx context.Context, f *Front) {
	GinkgoHelper()
	browser := NewBrowser()
	page, _ := replayed(
		Response{&http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}}},
			"<title>inspector</title>"})
	browser.Do(ctx, chromedp.Navigate(page))
	read := `fetch("` + f.URL() + resourcePath + `").then(() => "read", () => "blocked")`
	Expect(Ask(ctx, browser, chromedp.Evaluate[string](read, chromedp.EvalAwaitPromise))).To(Equal("blocked"))
}

package features_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// TokenRequest is a recorded token request with the status of its response.
type TokenRequest struct {
	Form   url.Values
	Header http.Header
	Status int
}

// Wire is the transport of a client. It records requests to the token endpoint.
type Wire struct {
	mu       sync.Mutex
	requests []TokenRequest
}

// RoundTrip implements http.RoundTripper.
func (w *Wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != "/oauth/token" {
		return http.DefaultTransport.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, TokenRequest{form, r.Header, answer.StatusCode})
	return answer, nil
}

func (w *Wire) TokenRequests() []TokenRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests)
}

// SDKClient is the official Go SDK's client. Its person approves every request with the editor's
// token.
type SDKClient struct {
	*auth.AuthorizationCodeHandler
	World  *World
	ID     string
	Wire   Wire
	Logins atomic.Int32 // number of consent pages
}

// NewSDKClient publishes the client's document.
func (w *World) NewSDKClient() *SDKClient {
	GinkgoHelper()
	return w.sdkClientOf(w.NewClient())
}

func (w *World) sdkClientOf(published *Client) *SDKClient {
	GinkgoHelper()
	return w.newSDKClient(published.ID, &auth.AuthorizationCodeHandlerConfig{
		ClientIDMetadataDocumentConfig: &auth.ClientIDMetadataDocumentConfig{URL: published.ID},
		RedirectURL:                    published.Redirect,
	})
}

func (w *World) NewRegisteringSDKClient() *SDKClient {
	GinkgoHelper()
	const redirect = "http://127.0.0.1:4321/callback"
	return w.newSDKClient("", &auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{
				ClientName: "Spec Client", RedirectURIs: []string{redirect},
				GrantTypes: []string{"authorization_code", "refresh_token"},
			}},
		RedirectURL: redirect,
	})
}

func (w *World) newSDKClient(id string, config *auth.AuthorizationCodeHandlerConfig) *SDKClient {
	GinkgoHelper()
	c := &SDKClient{World: w, ID: id}
	config.RequestRefreshToken, config.AuthorizationCodeFetcher, config.Client = true, c.browse,
		&http.Client{Transport: &c.Wire}
	c.AuthorizationCodeHandler = must(auth.NewAuthorizationCodeHandler(config))
	return c
}

// browse acts as the person and their browser.
func (c *SDKClient) browse(ctx context.Context, args *auth.AuthorizationArgs) (result *auth.AuthorizationResult,
	err error) {
	err = errors.New("the person did not get through")
	defer GinkgoRecover()
	c.Logins.Add(1)
	answer := ReadPage(Get(ctx, args.URL)).Approve(ctx, c.World.Token)
	Expect(answer.StatusCode).To(Equal(http.StatusSeeOther), answer.Text)
	Expect(answer.Header.Get("Location")).To(HavePrefix("http://127.0.0.1:4321/callback?"))
	back := answer.Target().Query()
	return &auth.AuthorizationResult{Code: back.Get("code"), State: back.Get("state"), Iss: back.Get("iss")}, nil
}

// Connect opens a session over streamable HTTP.
func (c *SDKClient) Connect(ctx context.Context, revision string) *mcp.ClientSession {
	GinkgoHelper()
	return ConnectSDK(ctx, revision, &mcp.StreamableClientTransport{
		Endpoint: c.World.MCP(), OAuthHandler: c, HTTPClient: &http.Client{Transport: &c.Wire},
	})
}

// ConnectSDK opens a session of the SDK's client over any transport; it ends with the spec.
func ConnectSDK(ctx context.Context, revision string, transport mcp.Transport) *mcp.ClientSession {
	GinkgoHelper()
	client := mcp.NewClient(&mcp.Implementation{Name: "spec", Version: "1"}, nil)
	session := must(client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: revision}))
	DeferCleanup(func() { _ = session.Close() })
	Expect(session.InitializeResult().ProtocolVersion).To(Equal(revision))
	return session
}

func (c *SDKClient) Access(ctx context.Context) string {
	GinkgoHelper()
	return must(must(c.TokenSource(ctx)).Token()).AccessToken
}

// Forget expires the token for the client, which uses the real clock; world.Clock is the server's.
func (c *SDKClient) Forget(ctx context.Context) {
	GinkgoHelper()
	token := must(must(c.TokenSource(ctx)).Token())
	token.Expiry = time.Now()
}

// ListAndCall lists and calls the tools, and fails the spec on any error.
func ListAndCall(ctx context.Context, session *mcp.ClientSession) {
	GinkgoHelper()
	listed := must(session.ListTools(ctx, nil))
	var names []string
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
	}
	Expect(names).To(ConsistOf(editorTools))
	created := must(session.CallTool(ctx,
		&mcp.CallToolParams{Name: "create_article", Arguments: params{"title": "By the SDK"}}))
	Expect(created.IsError).To(BeFalse())
	articles := must(session.CallTool(ctx, &mcp.CallToolParams{Name: "list_articles"}))
	Expect(articles.Content).To(ConsistOf(HaveField("Text", ContainSubstring("By the SDK"))))
}

// bearer sends a token with every request, for transports without OAuth.
type bearer string

func (token bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(token))
	return http.DefaultTransport.RoundTrip(r)
}

var _ = Describe("Connecting the Go SDK's own client", Label("N9"), func() {
	var world *World
	var client *SDKClient
	BeforeEach(func() {
		world = NewWorld()
		client = world.NewSDKClient()
	})

	DescribeTableSubtree("over streamable HTTP, revision", func(revision string) {
		It("shows one consent page, then lists and calls tools", func(ctx SpecContext) {
			ListAndCall(ctx, client.Connect(ctx, revision))
			Expect(client.Logins.Load()).To(BeEquivalentTo(1))
		})

		It("gets its tokens with its first request, which sends a client_id and no secret",
			Label("D7"), func(ctx SpecContext) {
				client.Connect(ctx, revision)
				Expect(client.Wire.TokenRequests()).To(HaveLen(1))
				sent := client.Wire.TokenRequests()[0]
				Expect(sent.Status).To(Equal(http.StatusOK))
				Expect(sent.Form.Get("grant_type")).To(Equal("authorization_code"))
				Expect(sent.Form).NotTo(HaveKey("client_id"))
				name, password, _ := (&http.Request{Header: sent.Header}).BasicAuth()
				Expect(name).To(Equal(url.QueryEscape(client.ID)))
				Expect(password).To(BeEmpty())
			})

		It("refreshes when its token expires, without a consent page and in the same session",
			Label("D22", "D26", "G14"), func(ctx SpecContext) {
				session := client.Connect(ctx, revision)
				old := client.Access(ctx)
				world.Clock.Advance(time.Hour)
				client.Forget(ctx)
				Expect(world.Call(ctx, old)).To(BeChallenged(world, "invalid_token"))

				ListAndCall(ctx, session)
				Expect(client.Access(ctx)).NotTo(Equal(old))
				Expect(client.Logins.Load()).To(BeEquivalentTo(1))
				Expect(client.Wire.TokenRequests()).To(HaveLen(2))
				sent := client.Wire.TokenRequests()[1]
				Expect(sent.Status).To(Equal(http.StatusOK))
				Expect(sent.Form).To(And(HaveLen(2), HaveKeyWithValue("grant_type", []string{"refresh_token"}),
					HaveKey("refresh_token")))
			})

		It("shows the consent page again when the server rejects its token", Label("G7"), func(ctx SpecContext) {
			session := client.Connect(ctx, revision)
			Expect(world.EndGrantsOf(ctx, world.Token)).To(Equal(1))
			_, err := session.ListTools(ctx, nil)
			Expect(client.Logins.Load()).To(BeEquivalentTo(2))
			if revision == stateless {
				Expect(err).NotTo(HaveOccurred())
			}
			ListAndCall(ctx, client.Connect(ctx, revision)) // the session ended with its grant
			Expect(client.Logins.Load()).To(BeEquivalentTo(2))
			Expect(client.Wire.TokenRequests()).To(HaveLen(2))
		})
	}, revisions(batching, headers, sessions, stateless))

	It("registers itself where it has no document, and stays connected under a new server secret",
		Label("L6", "L7"), func(ctx SpecContext) {
			world = NewWorld(selfRegistration)
			client = world.NewRegisteringSDKClient()
			session := client.Connect(ctx, stateless)
			ListAndCall(ctx, session)
			world.RotateKeys(ctx)
			client.Forget(ctx)
			Expect(session.ListTools(ctx, nil)).Error().NotTo(HaveOccurred())
			Expect(client.Wire.TokenRequests()).To(HaveLen(2))
			Expect(client.Connect(ctx, stateless).ListTools(ctx, nil)).Error().NotTo(HaveOccurred())
			Expect(client.Logins.Load()).To(BeEquivalentTo(1))
		})

	DescribeTable("lists and calls over HTTP+SSE with its token", func(ctx SpecContext, revision string) {
		client.Connect(ctx, stateless)
		ListAndCall(ctx, ConnectSDK(ctx, revision, &mcp.SSEClientTransport{
			Endpoint: world.MCP(), HTTPClient: &http.Client{Transport: bearer(client.Access(ctx))},
		}))
	}, revisions(httpSSE, batching, headers, sessions))

	It("negotiates the newest revision over HTTP+SSE", func(ctx SpecContext) {
		client.Connect(ctx, stateless)
		transport := &mcp.SSEClientTransport{Endpoint: world.MCP(),
			HTTPClient: &http.Client{Transport: bearer(client.Access(ctx))}}
		session := must(mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil).Connect(ctx, transport, nil))
		DeferCleanup(func() { _ = session.Close() })
		Expect(session.InitializeResult().ProtocolVersion).To(Equal(sessions))
	})
})

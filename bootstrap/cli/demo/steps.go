package demo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest/browser"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// steps describes a connection in order. A step that is an HTTP exchange of the client has the path
// of the request, and a text with $members of the response or its $challenge.
var steps = []struct{ title, path, says string }{
	{"The client calls the MCP server without a token.", "/mcp", "401, with the challenge $challenge"},
	{"The client reads the metadata of the protected resource.", "/.well-known/oauth-protected-resource",
		"$resource is protected by $authorization_servers"},
	{"The client reads the metadata of the authorization server.", "/.well-known/oauth-authorization-server",
		"authorization at $authorization_endpoint, PKCE with $code_challenge_methods_supported"},
	{title: "The client sends the browser to the site, which fetches the client's metadata document."},
	{title: "The browser shows the consent page."},
	{title: "The person pastes the site's own token and approves."},
	{title: "The browser takes an authorization code back to the client."},
	{"The client exchanges the code and its PKCE verifier for tokens.", "/oauth/token",
		"an access token for $expires_in s and a refresh token, scope \"$scope\""},
	{title: "The client lists the tools and creates an article."},
}

// tour prints the steps. After a failure no other step follows.
type tour struct {
	terminal term.Terminal
	agent    string    // User-Agent, by which the trace distinguishes connections
	taken    int       // printed steps; with all of them taken, RoundTrip prints none
	last     time.Time // of the previous step
	failed   error
}

// step prints the next step with its outcome, or its err, and returns the first failure of all.
func (t *tour) step(err error, format string, values ...any) error {
	if t.failed != nil {
		return t.failed
	}
	now := time.Now()
	took := fmt.Sprintf("%.1f ms", float64(now.Sub(t.last).Microseconds())/1000)
	t.last = now
	t.taken++
	t.terminal.Printf("%d. %s\n", t.taken, t.terminal.Bold(steps[t.taken-1].title))
	if err != nil {
		t.terminal.Printf("   %s, %s\n", t.terminal.Red("failed"), took)
		t.failed = fmt.Errorf("step %d of %d failed: %w", t.taken, len(steps), err)
		return t.failed
	}
	t.terminal.Printf("   %s, %s: %s\n", t.terminal.Green("ok"), took, fmt.Sprintf(format, values...))
	return nil
}

// walk takes the client through all steps.
func (d *demo) walk(ctx context.Context) error {
	began := time.Now()
	t := &tour{terminal: d.terminal, agent: "pasteport-demo/1", last: began}
	session, err := d.connect(ctx, t,
		func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			return d.approve(ctx, t, args.URL)
		})
	if err != nil {
		return t.step(err, "")
	}
	defer session.Close()
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return t.step(fmt.Errorf("listing the tools: %w", err), "")
	}
	article, err := use(ctx, session, "create_article", map[string]any{
		"title": "Written by an MCP client on " + time.Now().Format("2 January 2006 at 15:04:05"),
		"body":  "This article was created with a token that is valid for an hour and can be revoked at any time.",
	})
	err = t.step(err, "%s; create_article wrote %q", term.Count(len(tools.Tools), "tool"), article["slug"])
	if err == nil {
		d.terminal.Printf("\nConnected in %s.\n", time.Since(began).Round(time.Millisecond))
	}
	return err
}

// approve acts as the person on the pages of the site.
func (d *demo) approve(ctx context.Context, t *tour, address string) (result *auth.AuthorizationResult, err error) {
	person := browser.Person{Token: d.token}
	page, err := person.Open(ctx, address)
	if err == nil && !d.published.Fetched() {
		err = errors.New("the site did not fetch the client's metadata document")
	}
	if err := t.step(err, "the site has read %s", d.published.ID()); err != nil {
		return nil, err
	}
	if !page.AsksForToken() {
		_, err = page.Answer()
	}
	if err := t.step(err, "it asks %q and has a field for the token", page.Title); err != nil {
		return nil, err
	}
	if page, err = person.Approve(ctx, page); err == nil {
		result, err = page.Answer()
	}
	if err := t.step(err, "the site knows the token and answers 303"); err != nil {
		return nil, err
	}
	return result, t.step(nil, "a code from %s, for %s", result.Iss, page.Location.Host)
}

// RoundTrip implements http.RoundTripper. It prints the next step if it belongs to the request.
func (t *tour) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("User-Agent", t.agent)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil || t.taken == len(steps) {
		return response, err
	}
	next := steps[t.taken]
	if next.path == "" || !strings.HasPrefix(request.URL.Path, next.path) {
		return response, nil
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body)) // for the client
	told := map[string]any{"challenge": response.Header.Get("WWW-Authenticate")}
	_ = json.Unmarshal(body, &told) // what is not JSON lacks a member
	outcome := os.Expand(next.says, func(name string) string {
		if told[name] == nil || told[name] == "" {
			err = cmp.Or(err, fmt.Errorf("the response is %s, without %s", response.Status, name))
		}
		return strings.Trim(fmt.Sprint(told[name]), "[]")
	})
	if err := t.step(err, "%s", outcome); err != nil {
		return nil, err
	}
	return response, nil
}

// connect opens a session of the SDK's client over HTTP. browse stands in for the browser.
func (d *demo) connect(ctx context.Context, t *tour, browse auth.AuthorizationCodeFetcher) (*sdk.ClientSession, error) {
	traffic := &http.Client{Transport: t}
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		ClientIDMetadataDocumentConfig: &auth.ClientIDMetadataDocumentConfig{URL: d.published.ID()},
		RedirectURL:                    d.home.URL + "/callback",
		AuthorizationCodeFetcher:       browse,
		RequestRefreshToken:            true,
		Client:                         traffic,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the client: %w", err)
	}
	implementation := &sdk.Implementation{Name: "pasteport-demo", Title: clientName, Version: service.Version()}
	return sdk.NewClient(implementation, nil).Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint:             d.service.Authz.Resources()[0].Resource.String(),
		HTTPClient:           traffic,
		OAuthHandler:         &onceHandler{OAuthHandler: handler},
		DisableStandaloneSSE: true,
	}, nil)
}

// onceHandler authorizes once. After a failure, the SDK would authorize again to try an older
// protocol version, and it would do so after its token is refused.
type onceHandler struct {
	auth.OAuthHandler
	taken  bool
	failed error
}

func (h *onceHandler) Authorize(ctx context.Context, request *http.Request, response *http.Response) error {
	if h.taken {
		defer response.Body.Close()
		return cmp.Or[error](h.failed, browser.RefusalOf(response))
	}
	h.taken = true
	h.failed = h.OAuthHandler.Authorize(ctx, request, response)
	return h.failed
}

// use calls a tool and returns its structured result.
func use(ctx context.Context, session *sdk.ClientSession, tool string, arguments any) (map[string]any, error) {
	result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return nil, fmt.Errorf("calling %s: %w", tool, err)
	}
	if content, ok := result.StructuredContent.(map[string]any); ok && !result.IsError {
		return content, nil
	}
	return nil, errors.New(tool + " has no result")
}

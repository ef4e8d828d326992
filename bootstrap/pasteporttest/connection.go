package pasteporttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"github.com/pasteport/pasteport/bootstrap/pasteporttest/browser"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest/clientsite"
)

// Connection is a client that a person has connected to the site. Only Refresh changes its tokens.
// Call its methods from the goroutine of the test only; the results of Client and Session are safe
// for concurrent use.
type Connection struct {
	site      *Site
	oauth     *oauth2.Config
	token     atomic.Pointer[oauth2.Token]
	expiresAt time.Time // of the access token, by the site's clock
	session   *mcp.ClientSession
}

func (c *Connection) take(token *oauth2.Token) {
	c.expiresAt = c.site.Now().Add(time.Duration(token.ExpiresIn+1) * time.Second) // expires_in is rounded down
	c.token.Store(token)
}

// Scopes returns the scopes that the site has granted.
func (c *Connection) Scopes() []string {
	scopes, _ := c.token.Load().Extra("scope").(string)
	return strings.Fields(scopes)
}

// Client returns an HTTP client that sends the newest access token with every request.
func (c *Connection) Client() *http.Client { return &http.Client{Transport: bearer{c}} }

type bearer struct{ connection *Connection }

func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	b.connection.token.Load().SetAuthHeader(request)
	return http.DefaultTransport.RoundTrip(request)
}

// Session is TrySession that fails the test on an error.
func (c *Connection) Session() *mcp.ClientSession {
	c.site.t.Helper()
	session, err := c.TrySession()
	if err != nil {
		c.site.t.Fatalf("pasteporttest: %v", err)
	}
	return session
}

// TrySession returns a session of the official Go SDK with the MCP server, the same one every time.
// The first call opens it; the error is a *Refusal if the server refuses the access token. If the
// server refuses the token or its scopes later, a call in the session returns a *Refusal, and the
// session stays open for calls after Refresh.
func (c *Connection) TrySession() (*mcp.ClientSession, error) {
	if c.session != nil {
		return c.session, nil
	}
	ctx, cancel := context.WithTimeout(c.site.t.Context(), stepTimeout)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "pasteporttest", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: c.site.endpoint, HTTPClient: c.Client(), OAuthHandler: noAuthorization{},
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("opening a session: %w", err)
	}
	c.site.t.Cleanup(func() { _ = session.Close() })
	c.session = session
	return session, nil
}

// noAuthorization is an auth.OAuthHandler that returns a *Refusal when the server refuses a
// request. The SDK then keeps the session open, and the request fails with this error.
type noAuthorization struct{}

func (noAuthorization) TokenSource(context.Context) (oauth2.TokenSource, error) { return nil, nil }

func (noAuthorization) Authorize(_ context.Context, _ *http.Request, response *http.Response) error {
	defer response.Body.Close()
	return browser.RefusalOf(response)
}

// Expire moves the clock of the site to the expiry of the access token. Access tokens of other
// connections may expire too. Expire first opens a session if the connection has none, so that
// calls in the session can get the refusal.
func (c *Connection) Expire() {
	_, _ = c.TrySession() // a test that uses the session gets the error from its own call
	if left := c.expiresAt.Sub(c.site.Now()); left > 0 {
		c.site.Advance(left)
	}
}

// Refresh is TryRefresh that fails the test on an error.
func (c *Connection) Refresh() {
	c.site.t.Helper()
	if err := c.TryRefresh(); err != nil {
		c.site.t.Fatalf("pasteporttest: %v", err)
	}
}

// TryRefresh exchanges the refresh token for new tokens. The error is a *Refusal if the site
// refuses, for example because it has revoked the token that the person pasted.
func (c *Connection) TryRefresh() error {
	ctx, cancel := context.WithTimeout(c.site.t.Context(), stepTimeout)
	defer cancel()
	next, err := c.oauth.TokenSource(ctx, &oauth2.Token{RefreshToken: c.token.Load().RefreshToken}).Token()
	if err != nil {
		return fmt.Errorf("refreshing the connection: %w", refusalOf(err))
	}
	c.take(next)
	return nil
}

// End revokes the refresh token as a client does. The access token then ends, too.
func (c *Connection) End() {
	c.site.t.Helper()
	if err := c.revoke(); err != nil {
		c.site.t.Fatalf("pasteporttest: ending the connection: %v", err)
	}
}

func (c *Connection) revoke() error {
	ctx, cancel := context.WithTimeout(c.site.t.Context(), stepTimeout)
	defer cancel()
	server, err := auth.GetAuthServerMetadata(ctx, c.site.issuer, http.DefaultClient)
	if err != nil || server == nil {
		return fmt.Errorf("reading the metadata of %s: %w", c.site.issuer, cmp.Or(err, errors.New("there is none")))
	}
	form := url.Values{"token": {c.token.Load().RefreshToken}, "client_id": {c.oauth.ClientID}}
	response, err := (&http.Client{Timeout: stepTimeout}).PostForm(server.RevocationEndpoint, form)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return browser.RefusalOf(response)
	}
	return nil
}

// stepTimeout limits each of Connect, Session, Refresh and End.
const stepTimeout = 30 * time.Second

// Connect is TryConnect that fails the test on an error.
func (s *Site) Connect(token string, scopes ...string) *Connection {
	s.t.Helper()
	c, err := s.TryConnect(token, scopes...)
	if err != nil {
		s.t.Fatalf("pasteporttest: %v", err)
	}
	return c
}

// TryConnect connects the client: a person opens the consent page, pastes the token that the site
// gave them, and approves the scopes. Without scopes, the client requests those that the site
// advertises. The error is a *Refusal when the site refuses the token or the scopes.
func (s *Site) TryConnect(token string, scopes ...string) (*Connection, error) {
	s.t.Helper()
	switch {
	case s.issuer == "":
		s.t.Fatalf("pasteporttest: the site is not ready: build the OAuth server from Site.Config")
	case s.server.URL == "":
		s.t.Fatalf("pasteporttest: the site is not ready: pass the site's Echo to Site.Serve")
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), stepTimeout)
	defer cancel()
	c := &Connection{site: s}
	err := c.open(ctx, token, scopes)
	if err == nil {
		return c, nil
	}
	hint := ""
	refusal, refused := errors.AsType[*Refusal](err)
	if refused && refusal.Status == http.StatusBadGateway && !s.client.Fetched() {
		hint = "; pass bootstrap.WithRootCAs(site.RootCAs()) to NewOAuthServer, so that the site can fetch the " +
			"client's metadata document"
	}
	return nil, fmt.Errorf("connecting: %w%s", refusalOf(err), hint)
}

// open runs the authorization code flow of the official Go SDK, which starts with the challenge of
// the MCP server.
func (c *Connection) open(ctx context.Context, token string, scopes []string) error {
	options := &auth.AuthorizationCodeHandlerConfig{
		ClientIDMetadataDocumentConfig: &auth.ClientIDMetadataDocumentConfig{URL: c.site.client.ID()},
		RedirectURL:                    clientsite.RedirectURI,
		RequestRefreshToken:            true,
		NewTokenSource: func(_ context.Context, config *oauth2.Config,
			issued *oauth2.Token) (oauth2.TokenSource, error) {
			c.oauth = config
			c.take(issued)
			return oauth2.StaticTokenSource(issued), nil
		},
		AuthorizationCodeFetcher: func(ctx context.Context,
			args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			person := browser.Person{Token: token}
			page, err := person.Open(ctx, args.URL)
			if err == nil && page.AsksForToken() {
				page, err = person.Approve(ctx, page)
			}
			if err != nil {
				return nil, err
			}
			return page.Answer()
		},
	}
	if len(scopes) > 0 {
		options.ScopeFilter = func([]string) []string { return scopes }
	}
	flow, err := auth.NewAuthorizationCodeHandler(options)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.site.endpoint, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "text/event-stream")
	challenge, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer challenge.Body.Close()
	if challenge.StatusCode != http.StatusUnauthorized {
		return fmt.Errorf("the site has no MCP server with OAuth: it returned %s", challenge.Status)
	}
	return flow.Authorize(ctx, request, challenge)
}

// Refusal is the error response of a site to a connection, a refresh or a call in a session.
type Refusal = browser.Refusal

// refusalOf converts an error of the token endpoint to a Refusal, and returns any other error
// unchanged.
func refusalOf(err error) error {
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		return err
	}
	return &Refusal{
		Status:      answer.Response.StatusCode,
		Code:        answer.ErrorCode,
		Description: answer.ErrorDescription,
		Body:        string(answer.Body),
	}
}

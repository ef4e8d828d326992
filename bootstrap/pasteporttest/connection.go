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
	"github.com/pasteport/pasteport/bootstrap/pasteporttest/browser"
	"golang.org/x/oauth2"
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

// Client returns an HTTP client that sends the access token with every request.
func (c *Connection) Client() *http.Client { return &http.Client{Transport: bearer{c}} }

type bearer struct{ connection *Connection }

// RoundTrip implements http.RoundTripper.
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

// noAuthorization returns a *Refusal when the server refuses a request. The SDK then keeps the
// session open and does not authorize again.
type noAuthorization struct{ auth.OAuthHandler }

// TokenSource implements auth.OAuthHandler.
func (noAuthorization) TokenSource(context.Context) (oauth2.TokenSource, error) { return nil, nil }

// Authorize implements auth.OAuthHandler.
func (noAuthorization) Authorize(_ context.Context, _ *http.Request, response *http.Response) error {
	defer response.Body.Close()
	return browser.RefusalOf(response)
}

// Expire moves the clock of the site to the expiry of the access token. Access tokens of other
// connections may expire too. It opens the session first if there is none, so that a call in the
// session gets the refusal.
func (c *Connection) Expire() {
	_, _ = c.TrySession() // a test without a session does not need one
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

// End ends the connection like a client: it revokes the refresh token, which also ends the access
// token.
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
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.RevocationEndpoint,
		strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return browser.RefusalOf(response)
	}
	return nil
}

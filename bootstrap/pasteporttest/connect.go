package pasteporttest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"golang.org/x/oauth2"

	"github.com/pasteport/pasteport/bootstrap/pasteporttest/browser"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest/clientsite"
)

// stepTimeout is the timeout of a whole step, such as a connection.
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
	s.checkServed()
	ctx, cancel := context.WithTimeout(s.t.Context(), stepTimeout)
	defer cancel()
	c := &Connection{site: s}
	if err := c.open(ctx, token, scopes); err != nil {
		return nil, fmt.Errorf("connecting: %w%s", refusalOf(err), s.hint(err))
	}
	return c, nil
}

func (s *Site) checkServed() {
	s.t.Helper()
	switch {
	case s.issuer == "":
		s.t.Fatalf("pasteporttest: the site is not ready: build the OAuth server from Site.Config")
	case s.server.URL == "":
		s.t.Fatalf("pasteporttest: the site is not ready: pass the site's Echo to Site.Serve")
	}
}

// hint returns advice about an error to append to it, or "".
func (s *Site) hint(err error) string {
	var refusal *Refusal
	if errors.As(err, &refusal) && refusal.Status == http.StatusBadGateway && !s.client.Fetched() {
		return "; pass bootstrap.WithRootCAs(site.RootCAs()) to NewOAuthServer, so that the site can fetch the " +
			"client's metadata document"
	}
	return ""
}

// open runs the authorization code flow of the official Go SDK, which starts with the challenge of
// the MCP server.
func (c *Connection) open(ctx context.Context, token string, scopes []string) error {
	config := &auth.AuthorizationCodeHandlerConfig{
		ClientIDMetadataDocumentConfig: &auth.ClientIDMetadataDocumentConfig{URL: c.site.client.ID()},
		RedirectURL:                    clientsite.RedirectURI,
		RequestRefreshToken:            true,
		NewTokenSource:                 c.keep,
		AuthorizationCodeFetcher: func(ctx context.Context,
			args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			return approve(ctx, token, args.URL)
		},
	}
	if len(scopes) > 0 {
		config.ScopeFilter = func([]string) []string { return scopes }
	}
	flow, err := auth.NewAuthorizationCodeHandler(config)
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

// keep stores the tokens from the token endpoint.
func (c *Connection) keep(_ context.Context, config *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
	c.oauth = config
	c.take(token)
	return oauth2.StaticTokenSource(token), nil
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

// approve opens the authorization URL as a person with this token, approves, and returns the
// authorization response.
func approve(ctx context.Context, token, address string) (*auth.AuthorizationResult, error) {
	person := browser.Person{Token: token}
	page, err := person.Open(ctx, address)
	if err == nil && page.AsksForToken() {
		page, err = person.Approve(ctx, page)
	}
	if err != nil {
		return nil, err
	}
	return page.Answer()
}

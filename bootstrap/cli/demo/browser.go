package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/pasteport/pasteport/adapters/htmlpage"
)

// browser acts as the person with their browser.
type browser struct {
	progress *progress
	client   *demoClient
	token    string

	address  string
	page     htmlpage.Page
	location *url.URL
	result   *auth.AuthorizationResult
}

// visit opens the authorization URL, fills in the form and returns the answer of the site to the
// client.
func (b *browser) visit(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	b.address = args.URL
	for _, act := range []func(context.Context) (outcome string, err error){b.open, b.look, b.approve, b.readCode} {
		if err := b.progress.step(func() (string, error) { return act(ctx) }); err != nil {
			return nil, err
		}
	}
	return b.result, nil
}

func (b *browser) open(ctx context.Context) (string, error) {
	before := b.client.fetches.Load()
	if _, err := b.load(ctx, http.MethodGet, b.address, http.StatusOK); err != nil {
		return "", err
	}
	if b.client.fetches.Load() == before {
		return "", errors.New("the site did not fetch the client's metadata document")
	}
	return "the site has read " + b.client.id, nil
}

func (b *browser) look(context.Context) (string, error) {
	if b.page.Action == "" || !b.page.Fields.Has("ticket") || !b.page.Fields.Has("bearer_token") {
		return "", errors.New("the page has no form for a token")
	}
	return fmt.Sprintf("it asks %q and has a field for the token", b.page.Title), nil
}

func (b *browser) approve(ctx context.Context) (string, error) {
	b.page.Fields.Set("bearer_token", b.token)
	b.page.Fields.Set("decision", "approve")
	response, err := b.load(ctx, http.MethodPost, b.page.Action, http.StatusSeeOther)
	if err != nil {
		return "", err
	}
	b.location, err = response.Location()
	return "the site knows the token and answers 303", err
}

func (b *browser) readCode(context.Context) (outcome string, err error) {
	if b.result, err = resultOf(b.location.Query()); err != nil {
		return "", err
	}
	return fmt.Sprintf("a code from %s, for %s", b.result.Iss, b.location.Host), nil
}

// resultOf parses the authorization response.
func resultOf(answer url.Values) (*auth.AuthorizationResult, error) {
	if refusal := answer.Get("error"); refusal != "" {
		return nil, fmt.Errorf("the site responded with %q: %q", refusal, answer.Get("error_description"))
	}
	return &auth.AuthorizationResult{Code: answer.Get("code"), State: answer.Get("state"), Iss: answer.Get("iss")}, nil
}

// load sends the fields and reads the page of the answer; it follows no redirect.
func (b *browser) load(ctx context.Context, method, address string, status int) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(b.page.Fields.Encode()))
	if err != nil {
		return nil, fmt.Errorf("requesting the site: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("requesting the site: %w", err)
	}
	defer response.Body.Close()
	if b.page, err = htmlpage.Read(response.Body); err != nil {
		return nil, err
	}
	if response.StatusCode != status {
		return nil, fmt.Errorf("the site responded with %s: %q", response.Status, b.page.Title)
	}
	return response, nil
}

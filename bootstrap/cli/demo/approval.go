package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/pasteport/pasteport/bootstrap/pasteporttest/browser"
)

// approval is the way of a person through the pages of the site, each a step of the progress.
type approval struct {
	progress *progress
	client   *demoClient
	person   browser.Person

	address string
	page    *browser.Page
	result  *auth.AuthorizationResult
}

// visit opens the authorization URL, fills in the form and returns the answer of the site to the
// client.
func (a *approval) visit(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	a.address = args.URL
	for _, act := range []func(context.Context) (outcome string, err error){a.open, a.look, a.approve, a.readCode} {
		if err := a.progress.step(func() (string, error) { return act(ctx) }); err != nil {
			return nil, err
		}
	}
	return a.result, nil
}

func (a *approval) open(ctx context.Context) (outcome string, err error) {
	before := a.client.fetches.Load()
	if a.page, err = a.person.Open(ctx, a.address); err != nil {
		return "", err
	}
	if a.page.Status != http.StatusOK {
		return "", fmt.Errorf("the site responded with %d: %q", a.page.Status, a.page.Title)
	}
	if a.client.fetches.Load() == before {
		return "", errors.New("the site did not fetch the client's metadata document")
	}
	return "the site has read " + a.client.id, nil
}

func (a *approval) look(context.Context) (string, error) {
	if !a.page.AsksForToken() {
		return "", errors.New("the page has no form for a token")
	}
	return fmt.Sprintf("it asks %q and has a field for the token", a.page.Title), nil
}

func (a *approval) approve(ctx context.Context) (outcome string, err error) {
	if a.page, err = a.person.Approve(ctx, a.page); err != nil {
		return "", err
	}
	if a.page.Status != http.StatusSeeOther {
		return "", fmt.Errorf("the site responded with %d: %q", a.page.Status, a.page.Title)
	}
	return "the site knows the token and answers 303", nil
}

func (a *approval) readCode(context.Context) (outcome string, err error) {
	answer, err := a.page.Answer()
	if err != nil {
		return "", err
	}
	if a.result, err = resultOf(answer); err != nil {
		return "", err
	}
	return fmt.Sprintf("a code from %s, for %s", a.result.Iss, a.page.Location.Host), nil
}

// resultOf parses the authorization response.
func resultOf(answer url.Values) (*auth.AuthorizationResult, error) {
	if refusal := answer.Get("error"); refusal != "" {
		return nil, fmt.Errorf("the site responded with %q: %q", refusal, answer.Get("error_description"))
	}
	return &auth.AuthorizationResult{Code: answer.Get("code"), State: answer.Get("state"), Iss: answer.Get("iss")}, nil
}

package pasteporttest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/pasteport/pasteport/adapters/htmlpage"
)

// browser simulates a person who pastes a token of the site into its consent page.
type browser struct{ token string }

// approve opens the authorization URL, approves, and returns the authorization response.
func (b browser) approve(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	shown, err := load(ctx, http.MethodGet, args.URL, nil)
	if err == nil && shown.Fields.Has("bearer_token") {
		shown.Fields.Set("bearer_token", b.token)
		shown.Fields.Set("decision", "approve")
		shown, err = load(ctx, http.MethodPost, shown.Action, shown.Fields)
	}
	if err != nil {
		return nil, err
	}
	if shown.location == nil {
		return nil, &Refusal{Status: shown.status, Description: shown.message()}
	}
	answer := shown.location.Query()
	if code := answer.Get("error"); code != "" {
		return nil, &Refusal{shown.status, code, answer.Get("error_description")}
	}
	return &auth.AuthorizationResult{Code: answer.Get("code"), State: answer.Get("state"), Iss: answer.Get("iss")}, nil
}

// page is a response of the site to a browser.
type page struct {
	htmlpage.Page
	status   int
	location *url.URL // target of a redirect, else nil
}

// message returns the message of the page for the person.
func (p *page) message() string {
	return cmp.Or(p.Alert, strings.Trim(p.Heading+": "+p.Lead, ": "))
}

// noRedirects returns redirects instead of following them.
var noRedirects = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func load(ctx context.Context, method, address string, form url.Values) (*page, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("opening a page of the site: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := noRedirects.Do(request)
	if err != nil {
		return nil, fmt.Errorf("opening a page of the site: %w", err)
	}
	defer response.Body.Close()
	p := &page{status: response.StatusCode}
	if p.Page, err = htmlpage.Read(response.Body); err != nil {
		return nil, err
	}
	if response.Header.Get("Location") != "" {
		if p.location, err = response.Location(); err != nil {
			return nil, fmt.Errorf("reading a redirect of the site: %w", err)
		}
	}
	return p, nil
}

package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// browser acts as the person with their browser.
type browser struct {
	progress *progress
	client   *demoClient
	token    string

	address, title, action string
	fields                 url.Values
	location               *url.URL
	result                 *auth.AuthorizationResult
}

// visit opens the authorization URL, fills in the form and returns the answer of the site to the client.
func (b *browser) visit(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	b.address = args.URL
	for _, act := range []func(context.Context) (outcome string, err error){b.open, b.look, b.approve, b.arrive} {
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
	if b.action == "" || !b.fields.Has("ticket") || !b.fields.Has("bearer_token") {
		return "", errors.New("the page has no form for a token")
	}
	return fmt.Sprintf("it asks %q and has a field for the token", b.title), nil
}

func (b *browser) approve(ctx context.Context) (string, error) {
	b.fields.Set("bearer_token", b.token)
	b.fields.Set("decision", "approve")
	response, err := b.load(ctx, http.MethodPost, b.action, http.StatusSeeOther)
	if err != nil {
		return "", err
	}
	b.location, err = response.Location()
	return "the site knows the token and answers 303", err
}

func (b *browser) arrive(context.Context) (outcome string, err error) {
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
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(b.fields.Encode()))
	if err != nil {
		return nil, fmt.Errorf("requesting the site: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("requesting the site: %w", err)
	}
	defer response.Body.Close()
	root, err := html.Parse(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the page: %w", err)
	}
	b.read(root)
	if response.StatusCode != status {
		return nil, fmt.Errorf("the site responded with %s: %q", response.Status, b.title)
	}
	return response, nil
}

func (b *browser) read(root *html.Node) {
	b.title, b.action, b.fields = "", "", url.Values{}
	for node := range root.Descendants() {
		switch {
		case node.DataAtom == atom.Title && node.FirstChild != nil:
			b.title = node.FirstChild.Data
		case node.DataAtom == atom.Form:
			b.action = attribute(node, "action")
		case node.DataAtom == atom.Input:
			b.fields.Set(attribute(node, "name"), attribute(node, "value"))
		}
	}
}

func attribute(node *html.Node, name string) string {
	for _, attribute := range node.Attr {
		if attribute.Key == name {
			return attribute.Val
		}
	}
	return ""
}

package pasteporttest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// browser simulates a person who pastes a token of the site into its consent page.
type browser struct{ token string }

// approve opens the authorization URL, approves, and returns the authorization response.
func (b browser) approve(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	shown, err := load(ctx, http.MethodGet, args.URL, nil)
	if err == nil && shown.fields.Has("bearer_token") {
		shown.fields.Set("bearer_token", b.token)
		shown.fields.Set("decision", "approve")
		shown, err = load(ctx, http.MethodPost, shown.action, shown.fields)
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
	status        int
	location      *url.URL // target of a redirect, else nil
	action        string   // of the form
	fields        url.Values
	alert         string
	title, advice string
}

// message returns the message of the page for the person.
func (p *page) message() string {
	if p.alert != "" {
		return p.alert
	}
	return strings.Trim(p.title+": "+p.advice, ": ")
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
	root, err := html.Parse(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading a page of the site: %w", err)
	}
	p := &page{status: response.StatusCode, fields: url.Values{}}
	if response.Header.Get("Location") != "" {
		if p.location, err = response.Location(); err != nil {
			return nil, fmt.Errorf("reading a redirect of the site: %w", err)
		}
	}
	p.read(root)
	return p, nil
}

func (p *page) read(root *html.Node) {
	for node := range root.Descendants() {
		switch {
		case node.DataAtom == atom.Form:
			p.action = attribute(node, "action")
		case node.DataAtom == atom.Input:
			p.fields.Set(attribute(node, "name"), attribute(node, "value"))
		case attribute(node, "role") == "alert":
			p.alert = text(node)
		case node.DataAtom == atom.H1:
			p.title = text(node)
		case attribute(node, "class") == "lead":
			p.advice = text(node)
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

// text returns the words inside a node.
func text(node *html.Node) string {
	var words []string
	for inner := range node.Descendants() {
		if inner.Type == html.TextNode {
			words = append(words, strings.Fields(inner.Data)...)
		}
	}
	return strings.Join(words, " ")
}

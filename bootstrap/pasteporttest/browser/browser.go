// Package browser acts as a person with a web browser who approves a client on the consent page of
// a site. Person.Open returns the Page at the authorization URL, Person.Approve fills in its form,
// and Page.Answer returns the authorization response. No redirect is followed.
package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	maxBody       = 256 << 10 // bytes of a page
	maxQuotedBody = 300

	tokenInput  = "bearer_token"
	fieldPrefix = "field_" // of the inputs of a site that asks for several fields
)

// Person has a token of the site.
type Person struct {
	Token  string
	Fields map[string]string // besides the token, at a site that asks for several

	Transport http.RoundTripper // nil uses http.DefaultTransport
}

// Open requests the page at the address. It returns error pages and redirects, too.
func (p Person) Open(ctx context.Context, address string) (*Page, error) {
	return p.load(ctx, http.MethodGet, address, nil)
}

// Approve fills in the form of a page that AsksForToken, and returns the next page.
func (p Person) Approve(ctx context.Context, page *Page) (*Page, error) {
	if !page.AsksForToken() {
		return nil, errors.New("the page has no form for a token")
	}
	form := page.Fields
	form.Set("decision", "approve")
	if form.Has(tokenInput) {
		form.Set(tokenInput, p.Token)
	} else {
		form.Set(fieldPrefix+"token", p.Token)
		for name, value := range p.Fields {
			form.Set(fieldPrefix+name, value)
		}
	}
	return p.load(ctx, http.MethodPost, page.Action.String(), form)
}

func (p Person) load(ctx context.Context, method, address string, form url.Values) (*Page, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("opening a page of the site: %w", err)
	}
	request.Header.Set("Accept", "text/html")
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := cmp.Or(p.Transport, http.DefaultTransport).RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("opening a page of the site: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("reading a page of the site: %w", err)
	}
	page := &Page{Status: response.StatusCode, Body: string(body), Fields: url.Values{}}
	if page.Location, err = response.Location(); err != nil && !errors.Is(err, http.ErrNoLocation) {
		return nil, fmt.Errorf("reading a redirect of the site: %w", err)
	}
	return page, page.parse(request.URL)
}

// Empty returns the names of the fields that are empty in the form and not in p.Fields, without the
// token.
func (p Person) Empty(page *Page) (names []string) {
	for input := range page.Fields {
		name, isField := strings.CutPrefix(input, fieldPrefix)
		if _, given := p.Fields[name]; isField && !given && name != "token" && page.Fields.Get(input) == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// AsksForToken reports whether the page is a consent page.
func (p *Page) AsksForToken() bool {
	inputs := slices.Collect(maps.Keys(p.Fields))
	return p.Action != nil && p.Fields.Has("ticket") && slices.ContainsFunc(inputs, func(input string) bool {
		return input == tokenInput || strings.HasPrefix(input, fieldPrefix)
	})
}

// Answer returns the authorization response, with which the site sends the browser back to the
// client. The error is a *Refusal if the response is an error, or the site shows a page instead.
func (p *Page) Answer() (*auth.AuthorizationResult, error) {
	if p.Location == nil {
		message := cmp.Or(p.Alert, strings.Trim(p.Heading+": "+p.Lead, ": "))
		return nil, &Refusal{Status: p.Status, Description: message, Body: p.Body}
	}
	answer := p.Location.Query()
	if code := answer.Get("error"); code != "" {
		return nil, &Refusal{
			Status:      p.Status,
			Code:        code,
			Description: answer.Get("error_description"),
			Body:        p.Body,
		}
	}
	return &auth.AuthorizationResult{Code: answer.Get("code"), State: answer.Get("state"), Iss: answer.Get("iss")}, nil
}

// Refusal is the error response of a site.
type Refusal struct {
	Status int // of the HTTP response
	// The OAuth error code, such as invalid_scope; empty for a page, such as the one after a wrong
	// token.
	Code        string
	Description string // for people
	Body        string // of the response
}

// RefusalOf returns the refusal in the response of an MCP server.
func RefusalOf(response *http.Response) *Refusal {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxBody)) // as much as can be read
	refusal := &Refusal{Status: response.StatusCode, Body: string(body)}
	challenges, err := oauthex.ParseWWWAuthenticate(response.Header.Values("WWW-Authenticate"))
	if err != nil {
		refusal.Description = err.Error()
	}
	for _, challenge := range challenges {
		if strings.EqualFold(challenge.Scheme, "Bearer") {
			refusal.Code, refusal.Description = challenge.Params["error"], challenge.Params["error_description"]
		}
	}
	return refusal
}

func (r *Refusal) Error() string {
	text := fmt.Sprintf("the site returned %d %s", r.Status, http.StatusText(r.Status))
	for _, reason := range []string{r.Code, r.Description} {
		if reason != "" {
			text += ": " + reason
		}
	}
	if r.Code == "" && r.Description == "" && r.Body != "" {
		text += ": " + r.Body[:min(len(r.Body), maxQuotedBody)]
	}
	return text
}

// Page is a response of the site, with the texts and the form of its HTML. Texts are "" where the
// page has none.
type Page struct {
	Status   int
	Location *url.URL // target of a redirect, else nil
	Body     string

	Title, Heading, Lead string
	Alert                string
	Code                 string   // the first code element, which is that of an error
	Action               *url.URL // of the form, absolute; nil if there is none, or it is malformed
	Fields               url.Values
}

func (p *Page) parse(base *url.URL) error {
	root, err := html.Parse(strings.NewReader(p.Body))
	if err != nil {
		return fmt.Errorf("reading a page of the site: %w", err)
	}
	for node := range root.Descendants() {
		switch {
		case node.DataAtom == atom.Title:
			p.Title = text(node)
		case node.DataAtom == atom.H1:
			p.Heading = text(node)
		case node.DataAtom == atom.Code:
			p.Code = cmp.Or(p.Code, text(node))
		case node.DataAtom == atom.Form:
			p.Action, _ = base.Parse(attribute(node, "action"))
		case node.DataAtom == atom.Input && attribute(node, "type") == "checkbox":
			if slices.ContainsFunc(node.Attr, func(a html.Attribute) bool { return a.Key == "checked" }) {
				p.Fields.Add(attribute(node, "name"), attribute(node, "value"))
			}
		case node.DataAtom == atom.Input:
			p.Fields.Set(attribute(node, "name"), attribute(node, "value"))
		case attribute(node, "role") == "alert":
			p.Alert = text(node)
		case attribute(node, "class") == "lead":
			p.Lead = text(node)
		}
	}
	return nil
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

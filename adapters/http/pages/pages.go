// Package pages renders the HTML pages for people: Welcome, Consent, ToolReview, Callback,
// Connections, Problem and Notice. Pages are those of one site with its Appearance;
// Pages.For returns an Edition in one language, whose Write methods answer a request.
//
// Texts of a client are cleaned, shortened and marked as its claim; hosts, which the server has
// checked, are shown as facts. A page needs no second request. Only Callback has a script, and it
// works without it. Every response has the security headers with a new style nonce.
package pages

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/a-h/templ"
	"golang.org/x/text/language"

	"github.com/pasteport/pasteport/adapters/internal/look"
	"github.com/pasteport/pasteport/domain/oauth"
)

//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.1118 generate -path ../../..

// Pages are the pages of one site.
type Pages struct {
	site       string
	appearance Appearance
	logo       templ.SafeURL
	colours    string
	links      oauth.Links
}

// New returns the pages of the site at host, or all mistakes of the appearance in one error.
func New(host string, appearance Appearance, links oauth.Links) (*Pages, error) {
	if err := appearance.Check(); err != nil {
		return nil, err
	}
	appearance.CredentialWord = cmp.Or(appearance.CredentialWord, WordToken)
	return &Pages{
		site:       cmp.Or(clean(appearance.Name), host),
		appearance: appearance,
		logo:       appearance.logo(),
		colours:    appearance.colours(),
		links:      links,
	}, nil
}

// Edition is the pages of a site in one language.
type Edition struct {
	pages    *Pages
	language language.Tag
}

// For returns the pages in the best language for an Accept-Language header.
func (p *Pages) For(acceptLanguage string) Edition { return Edition{p, languageFor(acceptLanguage)} }

// Server is an MCP server of the site.
type Server struct {
	Name string // "" if it is not configured any more
	URL  string
}

// Problem is the content of the error page. Title, Text and Advice are fixed texts of the server.
type Problem struct {
	Title      string
	Text       string  // what happened
	Advice     string  // what to do; empty stands for "start again in the app"
	Code       string  // OAuth error code
	Detail     string  // the exact mistake, in English, for a developer
	Incident   string  // id of the request in the log
	ClientHost string  // host of client_id, if it is known
	Return     *Return // the way back to the client, if there is one
}

// Return is the button of an error page that posts an error ticket to return to the client.
type Return struct {
	Host   string // host of the redirect target
	Action string // URL that the form is posted to
	Ticket string // sealed error ticket
}

// WriteProblem answers with the error page. It writes nothing if the page cannot be rendered.
func (e Edition) WriteProblem(w http.ResponseWriter, status int, p Problem) error {
	s := e.sheet()
	return s.write(w, status, s.problem(p))
}

// sheet is one page of an edition.
type sheet struct {
	Edition
	nonce   string // of its style and script
	scripts bool   // browsers may run its scripts
}

func (e Edition) sheet() sheet { return sheet{Edition: e, nonce: rand.Text()} }

// initialSize fits a page without a logo.
const initialSize = 16 << 10

// write sets the security headers. The caller sets Strict-Transport-Security, which depends on the
// scheme.
func (s sheet) write(w http.ResponseWriter, status int, page templ.Component) error {
	body := bytes.NewBuffer(make([]byte, 0, initialSize))
	if err := page.Render(context.Background(), body); err != nil {
		return fmt.Errorf("render a page: %w", err)
	}
	// No form-action: browsers would apply it to the redirect after the form too, and the client
	// would not get its answer.
	policy := "default-src 'none'; style-src 'nonce-" + s.nonce + "'; base-uri 'none'; frame-ancestors 'none'"
	if s.pages.logo != "" {
		policy += "; img-src data:"
	}
	if s.scripts {
		policy += "; script-src 'nonce-" + s.nonce + "'"
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	// With no-referrer, the form's Origin would be null, which the cross-origin guard refuses.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Content-Language", s.language.String())
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	if _, err := w.Write(body.Bytes()); err != nil {
		return fmt.Errorf("send a page: %w", err)
	}
	return nil
}

// markup is HTML that is constant or escaped. It is a templ.Component.
type markup string

func (m markup) Render(_ context.Context, w io.Writer) error {
	_, err := io.WriteString(w, string(m))
	return err
}

// address returns a host or a URL, left to right in every language.
func address(text string) markup {
	return `<bdi class="host" dir="ltr">` + markup(templ.EscapeString(host(text))) + `</bdi>`
}

// name returns a name, isolated from the direction of the text around it.
func name(text string) markup {
	return `<bdi>` + markup(templ.EscapeString(text)) + `</bdi>`
}

// claimed is the name that a client gives itself.
func (s sheet) claimed(clientName string) markup {
	quoted := appName(clientName)
	if quoted == "" {
		return markup(s.say("An app without a name"))
	}
	return `<span class="claim"><q>` + name(quoted) + `</q> <small>(` + markup(s.say("unverified")) + `)</small></span>`
}

// day returns a date in the form 2006-01-02.
func day(date string) markup {
	return `<time>` + markup(templ.EscapeString(date)) + `</time>`
}

// style returns the style element with the site's colours and the nonce of the page.
func (s sheet) style() markup {
	return `<style nonce="` + markup(templ.EscapeString(s.nonce)) + "\">\n" +
		markup(look.Style+s.pages.colours) + `</style>`
}

// script returns an inline script with the nonce of the page. Browsers run it only if s.scripts is
// set.
func (s sheet) script(source string) markup {
	return `<script nonce="` + markup(templ.EscapeString(s.nonce)) + "\">\n" + markup(source) + `</script>`
}

// link is a link of the operator, with its text in the language of the page.
type link struct {
	text   string
	target templ.SafeURL
}

// links returns the links of the operator that have a target, each target once.
func (s sheet) links() (all []link) {
	of, seen := s.pages.links, map[string]bool{"": true}
	add := func(text, target string) {
		if !seen[target] {
			seen[target] = true
			all = append(all, link{text, templ.URL(target)})
		}
	}
	add(s.say("Documentation"), of.URL(oauth.ServiceDocumentation))
	add(s.say("Privacy policy"), of.URL(oauth.OperatorPolicy))
	add(s.say("Terms of service"), of.URL(oauth.OperatorTerms))
	add(s.say("About the server"), of.URL(oauth.ResourceDocumentation))
	add(s.say("Privacy policy of the server"), of.URL(oauth.ResourcePolicy))
	add(s.say("Terms of the server"), of.URL(oauth.ResourceTerms))
	return all
}

// Package pages draws the HTML that people see while an app asks for access: the consent page and the error page.
//
// It only renders, in the reader's language and with the site's own look. What the client says about itself is cut, cleaned and shown as its claim; what the server found
// out (hosts) is shown as fact. The pages need no script, no image and no second request, and every response carries
// the HTML headers of the catalogue (HH) with a style nonce of its own.
package pages

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	_ "embed" // the style
	"fmt"
	"net/http"
	"strconv"

	"github.com/a-h/templ"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/text/language"
)

// The templates of all folders become code at once.
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.1100 generate -path ../../..

//go:embed style.css
var stylesheet string

// Pages are those of one site.
type Pages struct {
	site    string
	look    Appearance
	logo    templ.SafeURL
	colours string
	forms   *lru.Cache[kind, form]
}

// New draws for the site at host. It returns the mistakes of the appearance, all at once.
func New(host string, look Appearance) (*Pages, error) {
	if err := look.Check(); err != nil {
		return nil, err
	}
	forms, _ := lru.New[kind, form](keptForms) // fails only for a size below one
	return &Pages{forms: forms, site: cmp.Or(clean(look.Name), host), look: look, logo: look.logo(), colours: look.colours()}, nil
}

// Edition is the pages in one language.
type Edition struct {
	pages    *Pages
	language language.Tag
}

// For returns the pages in the language that suits an Accept-Language header best.
func (p *Pages) For(acceptLanguage string) Edition { return Edition{p, languageFor(acceptLanguage)} }

// Problem is what the error page shows (A40, C40 to C46). Title, Text and Advice are fixed texts of the server.
type Problem struct {
	Title      string
	Text       string  // what happened
	Advice     string  // what to do; empty stands for "start again in the app"
	Code       string  // OAuth error code
	Detail     string  // what exactly is wrong, in English, for whoever can mend it
	Incident   string  // id under which the operator finds the details
	ClientHost string  // host of client_id, if it is known
	Return     *Return // the way back to the client, if there is one
}

// Return is the one button of an error page: it posts an error ticket that lets the human go back (B17).
type Return struct {
	Host   string // host of the redirect target
	Action string // URL that the form is posted to
	Ticket string // sealed error ticket
}

// WriteProblem answers with the error page. Nothing is written if it cannot be rendered.
func (e Edition) WriteProblem(w http.ResponseWriter, status int, p Problem) error {
	s := e.sheet(rand.Text())
	return s.write(w, status, s.problem(p))
}

// sheet is one page of an edition.
type sheet struct {
	Edition
	nonce string // of its style
}

func (e Edition) sheet(nonce string) sheet { return sheet{e, nonce} }

// usualSize is that of a page without a logo.
const usualSize = 16 << 10

func (s sheet) write(w http.ResponseWriter, status int, page templ.Component) error {
	body, err := draw(page)
	if err != nil {
		return err
	}
	return s.send(w, status, body)
}

func draw(page templ.Component) ([]byte, error) {
	body := bytes.NewBuffer(make([]byte, 0, usualSize))
	if err := page.Render(context.Background(), body); err != nil {
		return nil, fmt.Errorf("render a page: %w", err)
	}
	return body.Bytes(), nil
}

func (s sheet) send(w http.ResponseWriter, status int, body []byte) error {
	setHeaders(w.Header(), s.nonce, s.pages.logo != "")
	return s.sendBody(w, status, body)
}

// sendWithScript is like send, with a policy that allows the scripts of the page.
func (s sheet) sendWithScript(w http.ResponseWriter, status int, body []byte) error {
	setHeaders(w.Header(), s.nonce, s.pages.logo != "")
	w.Header().Set(policyHeader, w.Header().Get(policyHeader)+"; script-src 'nonce-"+s.nonce+"'")
	return s.sendBody(w, status, body)
}

func (s sheet) sendBody(w http.ResponseWriter, status int, body []byte) error {
	w.Header().Set("Content-Language", s.language.String())
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		return fmt.Errorf("send a page: %w", err)
	}
	return nil
}

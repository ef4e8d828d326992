// Package pages draws the HTML that people see while an app asks for access: the consent page and the error page.
//
// It only renders. What the client says about itself is cut, cleaned and shown as its claim; what the server found
// out (hosts) is shown as fact. The pages need no script, no image and no second request, and every response carries
// the HTML headers of the catalogue (HH) with a style nonce of its own.
package pages

import (
	"bytes"
	"crypto/rand"
	"embed"
	"fmt"
	"html/template"
	"net/http"
)

//go:embed *.html style.css
var files embed.FS

var templates = template.Must(template.New("pages").
	Funcs(template.FuncMap{"claim": claim, "host": host}).
	ParseFS(files, "*.html", "style.css"))

// Consent is what the consent page shows (A35, A36). Texts from the client need no preparation.
type Consent struct {
	ClientName   string // what the client calls itself; shown as its claim
	ClientHost   string // host of client_id, in ASCII form
	RedirectHost string // host[:port] of redirect_uri; may be empty for a private-use scheme

	Loopback        bool // the redirect goes to this computer
	PrivateScheme   bool // the redirect opens an installed app
	ForeignRedirect bool // RedirectHost differs from ClientHost
	Unnamed         bool // the client's document does not name itself (C23)

	Grants  []string // one sentence per granted scope; offline_access is told by Offline
	Offline bool     // the app may renew its access by itself

	Resource   string // the MCP server that the app will reach
	IssuerHost string // the site that asks for the token

	Action  string // URL that the form is posted to, without a query (A37)
	Ticket  string // sealed ticket, posted back unchanged (B4)
	Problem string // why the last attempt failed (B6 to B9); empty at first
}

// Warns says whether the page has a warning to show (A36, C23).
func (c Consent) Warns() bool {
	return c.Loopback || c.PrivateScheme || c.ForeignRedirect || c.Unnamed
}

// Problem is what the error page shows (A40, C40 to C46). Title, Text and Advice are fixed texts of the server.
type Problem struct {
	Title      string
	Text       string  // what happened
	Advice     string  // what to do; empty stands for "start again in the app"
	Code       string  // OAuth error code
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

// WriteConsent answers with the consent page. Nothing is written if it cannot be rendered.
func WriteConsent(w http.ResponseWriter, status int, c Consent) error {
	return write(w, status, "consent", c)
}

// WriteProblem answers with the error page. Nothing is written if it cannot be rendered.
func WriteProblem(w http.ResponseWriter, status int, p Problem) error {
	return write(w, status, "problem", p)
}

// sheet is what every template gets: the page and the nonce of its style.
type sheet struct {
	Nonce string
	Page  any
}

func write(w http.ResponseWriter, status int, name string, page any) error {
	nonce := rand.Text()
	var body bytes.Buffer
	if err := templates.ExecuteTemplate(&body, name, sheet{Nonce: nonce, Page: page}); err != nil {
		return fmt.Errorf("render %s page: %w", name, err)
	}
	setHeaders(w.Header(), nonce)
	w.WriteHeader(status)
	if _, err := body.WriteTo(w); err != nil {
		return fmt.Errorf("send %s page: %w", name, err)
	}
	return nil
}

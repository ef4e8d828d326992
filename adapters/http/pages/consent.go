package pages

import (
	_ "embed" // the script
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// Consent is the content of the consent page. The page escapes texts from the client.
type Consent struct {
	ClientName   string // name that the client claims
	ClientHost   string // host of client_id, in ASCII form
	RedirectHost string // host[:port] of redirect_uri, or "scheme:" for a private-use scheme

	Loopback        bool // the redirect goes to this computer
	PrivateScheme   bool // the redirect opens an installed app
	ForeignRedirect bool // RedirectHost differs from ClientHost
	Unnamed         bool // the client's document has no client_id
	SelfRegistered  bool // the client has no ClientHost that vouches for its name
	Hosted          bool // the client is a program on this computer, and ClientHost is this server

	CheckedOn string // the day of the last check of the client's document, if it could not be checked now

	Permissions []Permission // the requested scopes except offline_access, see Offline
	Offline     bool         // the app asks to refresh its access without the person

	StaysConnected bool       // the checkbox for Offline is checked
	Lifetimes      []Lifetime // to choose from; empty for GrantTTL

	// Access that is Offline lasts at most IdleTTL without use and GrantTTL in all; other access
	// lasts for the shorter of AccessTTL and GrantTTL.
	IdleTTL, GrantTTL, AccessTTL time.Duration

	Server Server // the MCP server that the app will reach

	Action  string // URL that the form is posted to, without a query
	Manage  string // URL of the connections page
	Ticket  string // sealed ticket, posted back unchanged
	Problem string // why the last attempt failed; empty at first
	RetryIn string // seconds after which the next one may succeed; empty if that is unknown

	Fields []Field // inputs instead of the one for a token; nil for a token

	Upstream UpstreamCondition // of the server that the app will reach
}

// Permission is a scope that the app asks for.
type Permission struct {
	Text      string // a sentence
	Scope     string // the value of its checkbox; empty for one that the person cannot take away
	Allowed   bool   // the checkbox is checked
	ImpliedBy string // the Text of another one that includes it; empty for none
}

// Lifetime is a time after which the connection ends.
type Lifetime struct {
	Value  string // in the form
	Lasts  time.Duration
	Chosen bool
}

// offersChoice reports whether the page has a checkbox.
func (c Consent) offersChoice() bool { return len(c.Permissions) > 1 || c.Offline }

// UpstreamCondition is what people are told about the server behind a gateway.
type UpstreamCondition int

// The conditions.
const (
	UpstreamWorks UpstreamCondition = iota // also if the condition is not known
	UpstreamDown
	UpstreamMisconfigured
)

// Warns reports whether the page has a warning.
func (c Consent) Warns() bool {
	return c.Loopback || c.PrivateScheme || c.ForeignRedirect || c.Unnamed || c.SelfRegistered || c.CheckedOn != ""
}

// WriteConsent answers with the consent page. Nothing is written if it cannot be rendered.
func (e Edition) WriteConsent(w http.ResponseWriter, status int, c Consent) error {
	c.ClientName = appName(c.ClientName)
	s := e.sheet()
	return s.write(w, status, s.consent(c))
}

// Field is an input of a form with several fields. Label and Help are texts of the site.
type Field struct {
	Name     string
	Label    string // if empty, the page shows the label of a well-known name, or else Name
	Help     string
	Value    string // shown in the field; empty for a secret one
	Secret   bool
	Optional bool
	Problem  string // a sentence about the value that was entered
}

func (f Field) id() string { return "field_" + f.Name }

func (f Field) kind() string {
	if f.Secret {
		return "password"
	}
	return "text"
}

// autocomplete keeps the saved login of the site out of the form: password managers ignore "off".
func (f Field) autocomplete() string {
	if f.Secret {
		return "one-time-code"
	}
	return "off"
}

// describedBy returns the ids of the texts about the field; why is the text about the form.
func (f Field) describedBy() string {
	ids := "why"
	if f.Help != "" {
		ids = f.id() + "_help " + ids
	}
	if f.Problem != "" {
		ids = f.id() + "_problem " + ids
	}
	return ids
}

// hasFocus reports whether the page opens with the cursor in field i: after a problem, in the first
// field with its own problem, or else in the first field.
func hasFocus(fields []Field, i int, problem string) bool {
	first := slices.IndexFunc(fields, func(f Field) bool { return f.Problem != "" })
	return problem != "" && i == max(first, 0)
}

// ToolReview is the page that tells a person how the tools of a server differ from those that they
// approved for the app before. The page escapes and shortens texts from the server.
type ToolReview struct {
	ClientName         string // name that the client claims
	RedirectHost       string // as in Consent
	Server             Server
	New, Changed, Gone []string // names of tools; a long list ends with "…"

	Action   string     // URL that the form is posted to
	Form     url.Values // hidden fields
	Decision string     // the value of the button that approves
	Manage   string     // URL of the connections page
}

type hiddenField struct{ name, value string }

// hiddenFields returns the values of a form, sorted by name.
func hiddenFields(form url.Values) (fields []hiddenField) {
	for _, name := range slices.Sorted(maps.Keys(form)) {
		for _, value := range form[name] {
			fields = append(fields, hiddenField{name, value})
		}
	}
	return fields
}

// WriteToolReview answers with the page about changed tools. Nothing is written if it cannot be
// rendered.
func (e Edition) WriteToolReview(w http.ResponseWriter, r ToolReview) error {
	s := e.sheet()
	return s.write(w, http.StatusOK, s.toolReview(r))
}

// callbackScript shows and serves the copy button, because a long address is easily copied without
// its end. Without script, the person selects the address in its field by hand.
//
//go:embed callback.js
var callbackScript string

// Callback is the page with the callback URL, for a person who carries it to an app on another
// computer.
type Callback struct {
	URL       string
	ExpiresAt time.Time
	Left      time.Duration // until ExpiresAt
	Manage    string        // URL of the connections page
}

// Minutes returns the whole minutes that are left; a second that the answer may take does not
// count.
func (c Callback) Minutes() int { return int((c.Left + time.Second) / time.Minute) }

func (c Callback) expiry() markup {
	at := c.ExpiresAt.UTC()
	return markup(`<time datetime="` + at.Format(time.RFC3339) + `">` + at.Format("15:04:05 UTC") + `</time>`)
}

// WriteCallback answers with the page of the callback URL. Nothing is written if it cannot be
// rendered.
func (e Edition) WriteCallback(w http.ResponseWriter, c Callback) error {
	s := e.sheet()
	s.scripts = true
	return s.write(w, http.StatusOK, s.callback(c))
}

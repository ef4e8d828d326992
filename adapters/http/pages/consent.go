package pages

import (
	"net/http"
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

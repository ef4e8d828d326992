package pages

import (
	"net/http"
	"time"
)

// Connections is the page with the connections of a token. Without a ticket it shows the form for
// the token.
type Connections struct {
	Active  []Connection // on this page
	Action  string       // URL that the forms are posted to
	Ticket  string       // sealed, posted back unchanged
	Problem string       // why the last attempt failed
	RetryIn string       // seconds after which the next one may succeed; empty if that is unknown
	Fields  []Field      // that the person fills in; none for the token alone
	Done    string       // what the last submitted form has done, unless it has ended connections
	Ended   int          // how many connections it has ended
	Now     time.Time    // when the connections were found

	Replacement        []Field // that replace the person's credential; none for a token alone
	ReplacementProblem string  // why the last replacement failed

	All         int  // active connections of all pages
	Page, Pages int  // from 1
	Limit       int  // maximum of All
	NearLimit   bool // All is close to Limit, so the page shows Limit
}

// Connection is an app with access to the site for a person.
type Connection struct {
	Grant         string // its id
	Account       string // of the person at the site; empty if it is not known
	ClientName    string // the client's claim
	ClientHost    string // empty for an app that registered itself
	Server        Server
	Loopback      bool
	PrivateScheme bool
	Permissions   []Permission
	Waiting       bool // the app has not redeemed its code
	CreatedAt     time.Time
	LastUsedAt    time.Time // zero when it never was
	EndsBy        time.Time // if it is unused until then
	EndsAtLatest  time.Time
}

// WriteConnections answers with the connections page. Nothing is written if it cannot be rendered.
func (e Edition) WriteConnections(w http.ResponseWriter, status int, c Connections) error {
	s := e.sheet()
	return s.write(w, status, s.connections(c))
}

// Welcome is the page for a person who opens the address of an MCP server in a browser.
type Welcome struct {
	Servers []Server // at least one
	Manage  string   // URL of the connections page
}

// WriteWelcome answers with the welcome page. Nothing is written if it cannot be rendered.
func (e Edition) WriteWelcome(w http.ResponseWriter, status int, page Welcome) error {
	s := e.sheet()
	return s.write(w, status, s.welcome(page))
}

// Notice is a page with texts of the caller in English.
type Notice struct {
	Title      string
	Paragraphs []string
	Link       string // "" for none
	LinkText   string
}

// WriteNotice answers with the notice. Nothing is written if it cannot be rendered.
func (e Edition) WriteNotice(w http.ResponseWriter, notice Notice) error {
	s := e.sheet()
	return s.write(w, http.StatusOK, s.notice(notice))
}

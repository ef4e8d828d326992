package pages

import (
	"crypto/rand"
	"net/http"
	"time"
)

// Connections is the page on which people see and end the connections of their token. Without a ticket it asks for the token first.
type Connections struct {
	Living  []Connection // those of this page
	Action  string       // URL that the forms are posted to
	Ticket  string       // sealed, posted back unchanged
	Problem string       // why the last attempt failed
	Done    string       // what the last button did

	All         int  // living connections of all pages
	Page, Pages int  // from 1
	Limit       int  // of All
	NearLimit   bool // the page shows Limit
}

// Connection is one app that can use the site in the person's name.
type Connection struct {
	Grant         string
	ClientName    string // the client's claim
	ClientHost    string
	Loopback      bool
	PrivateScheme bool
	Grants        []string // one sentence per scope
	Waiting       bool     // the app has not fetched its key yet
	CreatedAt     time.Time
	LastUsedAt    time.Time // zero when it never was
	EndsBy        time.Time
}

// WriteConnections answers with the connections page. Nothing is written if it cannot be rendered.
func (e Edition) WriteConnections(w http.ResponseWriter, status int, c Connections) error {
	s := e.sheet(rand.Text())
	return s.write(w, status, s.connections(c))
}

package oauth

import "time"

// Principal is the person behind a host token, as the site's verifier describes them. Roles mean something to the site's own
// tool policy only; the OAuth layer never reads them.
type Principal struct {
	Subject string
	Roles   []string
	Scopes  []string // the most that this token may grant; nil leaves it to the server's default (B10)
}

// Caller is who stands behind one request that presented a valid access token.
type Caller struct {
	Grant     string // stable over refreshes; sessions are bound to it (G14)
	Client    ClientID
	Subject   string
	Roles     []string
	Scopes    Scopes
	ExpiresAt time.Time // when the presented access token dies
}

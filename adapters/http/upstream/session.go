package upstream

import (
	"fmt"
	"net/http"

	"github.com/pasteport/pasteport/domain/oauth"
)

func (u *Upstream) owner(sender oauth.Caller) string { return sender.SessionOwner(u.options.Resource) }

// openSession returns the upstream's id of the session of a request, "" when it has none.
func (u *Upstream) openSession(header http.Header, owner string) (string, error) {
	named := header.Values(sessionHeader)
	switch len(named) {
	case 0:
		return "", nil
	case 1:
		return u.open(named[0], owner)
	}
	return "", oauth.ErrNotFound
}

func (u *Upstream) open(bound, owner string) (string, error) {
	session, ok, err := u.options.Sessions.OpenSession(bound, owner)
	if err != nil {
		return "", fmt.Errorf("opening a session id: %w", err)
	}
	if !ok {
		return "", oauth.ErrNotFound
	}
	return session, nil
}

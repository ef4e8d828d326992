package upstream

import (
	"fmt"
	"net/http"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/oauth"
)

func (u *Upstream) owner(sender oauth.Caller) string { return sender.SessionOwner(u.options.Resource) }

// openSession returns the upstream's session id of a request, "" if it has none. It fails with
// oauth.ErrNotFound for a session of another owner.
func (u *Upstream) openSession(header http.Header, owner string) (string, error) {
	ids := header.Values(message.SessionHeader)
	switch len(ids) {
	case 0:
		return "", nil
	case 1:
		return u.open(ids[0], owner)
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

package upstream

import (
	"fmt"
	"net/http"

	"github.com/pasteport/pasteport/domain/oauth"
)

// openSession returns how the upstream calls the session that a request names, "" when it names none.
func (u *Upstream) openSession(header http.Header, grant string) (string, error) {
	named := header.Values(sessionHeader)
	switch len(named) {
	case 0:
		return "", nil
	case 1:
		return u.open(named[0], grant)
	}
	return "", oauth.ErrNotFound
}

func (u *Upstream) open(bound, grant string) (string, error) {
	session, ok, err := u.options.Sessions.OpenSession(bound, grant)
	if err != nil {
		return "", fmt.Errorf("reading the name of a session: %w", err)
	}
	if !ok {
		return "", oauth.ErrNotFound
	}
	return session, nil
}

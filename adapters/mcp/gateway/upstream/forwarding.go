package upstream

import (
	"net/http"

	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/domain/oauth"
)

// forwarding is the state of one forwarded request.
type forwarding struct {
	sender       oauth.Caller
	host         oauth.HostToken
	credentials  secret.Credentials
	session      string // the id of the upstream
	key          string // of its cookies; "" without a session
	requestID    string // X-Request-Id of our response
	body         []byte
	setName      func(http.Header)
	isRepeatable bool // does no harm when the upstream gets it twice
	failed       error
	cut          error // after the beginning of the response
}

type forwardingKey struct{}

func forwardingOf(r *http.Request) *forwarding {
	x, _ := r.Context().Value(forwardingKey{}).(*forwarding)
	return x
}

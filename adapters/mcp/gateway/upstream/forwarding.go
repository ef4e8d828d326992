package upstream

import (
	"net/http"
	"net/url"

	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/domain/oauth"
)

// forwarding is the state of one forwarded request.
type forwarding struct {
	target      *url.URL
	sender      oauth.Caller
	host        oauth.HostToken
	credentials secret.Credentials
	session     string         // the id of the upstream
	key         string         // of its cookies; "" without a session
	set         []*http.Cookie // by the response that begins a stream of HTTP+SSE
	ofSession   bool           // the request belongs to a session, by its header or its URL
	requestID   string         // X-Request-Id of our response
	body        []byte
	failed      error
	cut         error // after the beginning of the response
}

type forwardingKey struct{}

func forwardingOf(r *http.Request) *forwarding {
	x, _ := r.Context().Value(forwardingKey{}).(*forwarding)
	return x
}

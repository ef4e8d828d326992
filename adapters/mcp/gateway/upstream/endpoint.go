package upstream

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	endpointParameter = "endpoint"
	endpointPrefix    = "endpoint-" // distinguishes a bound message endpoint from a session id
)

// rewriteEndpoint replaces the endpoint events of an HTTP+SSE stream, so that its messages are
// posted to the gateway.
func (u *Upstream) rewriteEndpoint(answer *http.Response, x *forwarding) {
	answer.Header.Del("Content-Length")
	answer.ContentLength = -1
	answer.Body = newRewriter(answer.Body, func(address string) (string, error) {
		return u.sealEndpoint(address, x)
	})
}

// sealEndpoint binds the message endpoint of the upstream to its owner, and returns the URL of the
// gateway for it.
func (u *Upstream) sealEndpoint(address string, x *forwarding) (string, error) {
	target, err := x.target.Parse(address)
	if err != nil || target.Scheme != x.target.Scheme || target.Host != x.target.Host &&
		target.Host != u.options.Host || strings.HasPrefix(target.EscapedPath(), "//") {
		u.options.Logger.Error("ended an SSE stream of the upstream: its message endpoint is at another origin",
			"rule", "U13")
		return "", errors.New("the message endpoint is at another origin")
	}
	target = x.credentials.RemoveFrom(target) // clients can read it, and each message gets the credentials again
	u.cookies.keep(sessionKey(u.owner(x.sender), target.RequestURI()), x.set)
	bound, err := u.options.Sessions.BindSession(endpointPrefix+
		base64.RawURLEncoding.EncodeToString([]byte(target.RequestURI())), u.owner(x.sender))
	if err != nil {
		return "", fmt.Errorf("binding a message endpoint: %w", err)
	}
	return u.options.MessagePath + "?" + url.Values{endpointParameter: {bound}}.Encode(), nil
}

// openEndpoint returns the message endpoint of the upstream from a query of sealEndpoint.
func (u *Upstream) openEndpoint(query url.Values, owner string) (*url.URL, error) {
	opened, err := u.open(query.Get(endpointParameter), owner)
	if err != nil {
		return nil, err
	}
	encoded, marked := strings.CutPrefix(opened, endpointPrefix)
	address, err := base64.RawURLEncoding.DecodeString(encoded)
	if !marked || err != nil {
		return nil, oauth.ErrNotFound
	}
	path, err := url.ParseRequestURI(string(address))
	if err != nil {
		return nil, oauth.ErrNotFound
	}
	target := *u.url // the host of the URL, for any path
	target.Path, target.RawPath, target.RawQuery = path.Path, path.RawPath, path.RawQuery
	return &target, nil
}

func (u *Upstream) owner(sender oauth.Caller) string { return sender.SessionOwner(u.options.Resource) }

// openSession returns the upstream's session id of a request, "" if it has none. It fails with
// oauth.ErrNotFound for a session of another owner.
func (u *Upstream) openSession(header http.Header, owner string) (string, error) {
	ids := header.Values(jsonrpc.SessionHeader)
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

package upstream

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Credential authenticates requests to the upstream: HostToken, Static or None.
type Credential interface {
	present(out *http.Request, x *forwarding)
	// ofSender reports whether the credential is the sender's own, so that a 401 concerns the sender and not the gateway.
	ofSender() bool
}

// HostToken sends the host token of the caller (U6, J13).
type HostToken struct{}

func (HostToken) ofSender() bool { return true }

func (HostToken) present(out *http.Request, x *forwarding) { setBearer(out, x.host.Reveal()) }

// None sends no credential.
type None struct{}

func (None) ofSender() bool { return false }

func (None) present(*http.Request, *forwarding) {}

// Static sends one secret for all callers, and identifies the caller in headers that are signed with another secret (U7).
type Static struct {
	Secret   string
	Signer   Signer
	Resource oauth.Resource
}

func (Static) ofSender() bool { return false }

func (s Static) present(out *http.Request, x *forwarding) {
	setBearer(out, s.Secret)
	header := out.Header
	header.Set(ownPrefix+"Subject", encode(x.sender.Subject))
	roles := make([]string, 0, len(x.sender.Roles))
	for _, role := range x.sender.Roles {
		roles = append(roles, encode(role))
	}
	header.Set(ownPrefix+"Roles", strings.Join(roles, ","))
	header.Set(ownPrefix+"Client", encode(x.sender.Client.String()))
	header.Set(ownPrefix+"Grant", encode(x.sender.Grant))
	header.Set(ownPrefix+"Resource", encode(s.Resource.String()))
	s.Signer.sign(out, x.body)
}

func setBearer(out *http.Request, token string) { out.Header.Set("Authorization", "Bearer "+token) }

// encode percent-encodes a text for a header; decodeURIComponent and urllib.parse.unquote decode it.
func encode(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// Signer signs the headers that identify the caller.
type Signer struct {
	Key []byte // 32 bytes or more
	Now func() time.Time
}

package upstream

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Credential is as whom the upstream is asked.
type Credential interface {
	present(out *http.Request, x *exchange)
	// isSenders tells whether a 401 is about the sender and not about us.
	isSenders() bool
}

// HostToken presents the token that the person pasted (U6, J13).
func HostToken() Credential { return hostToken{} }

type hostToken struct{}

func (hostToken) isSenders() bool { return true }

func (hostToken) present(out *http.Request, x *exchange) { setBearer(out, x.host.Reveal()) }

// Nobody presents nothing.
func Nobody() Credential { return nobody{} }

type nobody struct{}

func (nobody) isSenders() bool { return false }

func (nobody) present(*http.Request, *exchange) {}

// Static presents one secret for everybody, and says who it is for in headers of its own, signed with another secret, which never
// leaves (U7).
func Static(secret string, signer Signer, resource oauth.Resource) Credential {
	return static{secret, signer, resource}
}

type static struct {
	secret   string
	signer   Signer
	resource oauth.Resource
}

func (static) isSenders() bool { return false }

func (s static) present(out *http.Request, x *exchange) {
	setBearer(out, s.secret)
	header := out.Header
	header.Set(ownPrefix+"Subject", encode(x.sender.Subject))
	roles := make([]string, 0, len(x.sender.Roles))
	for _, role := range x.sender.Roles {
		roles = append(roles, encode(role))
	}
	header.Set(ownPrefix+"Roles", strings.Join(roles, ","))
	header.Set(ownPrefix+"Client", encode(x.sender.Client.String()))
	header.Set(ownPrefix+"Grant", encode(x.sender.Grant))
	header.Set(ownPrefix+"Resource", encode(s.resource.String()))
	s.signer.sign(out, x.body)
}

func setBearer(out *http.Request, token string) { out.Header.Set("Authorization", "Bearer "+token) }

// encode makes any text fit into a header as ASCII; decodeURIComponent and urllib.parse.unquote read it.
func encode(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// Signer signs what a request says about its sender.
type Signer struct {
	Key []byte // 32 bytes or more
	Now func() time.Time
}

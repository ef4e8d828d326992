package upstream

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/mcp/gateway/check"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Credential authenticates requests to the upstream: HostToken, Static or None.
type Credential interface {
	// render returns what presents the credential. It is added to the request before identify is
	// called. It returns oauth.ErrUnknownBearer for values that the fields do not accept any more.
	render(host oauth.HostToken) (secret.Credentials, error)
	// identify adds the headers that identify the caller.
	identify(out *http.Request, x *forwarding)
	// sample returns what a check presents, and judge what its result means for calls.
	sample() (secret.Credentials, error)
	judge(found check.Result, acceptsAny, proven bool) check.Result
	// sent describes how the credential is sent, "" for none.
	sent() string
	// ofSender reports whether the credential is the sender's own, so that a 401 concerns the
	// sender and not the gateway.
	ofSender() bool
}

// HostToken sends the host token of the caller.
type HostToken struct {
	Presentation secret.Presentation
	VerifiesKeys bool // the upstream is the only one that checks keys
}

func (HostToken) ofSender() bool { return true }

func (h HostToken) render(host oauth.HostToken) (secret.Credentials, error) {
	values := host.Values()
	if !h.Presentation.Accepts(values) {
		return secret.Credentials{}, oauth.ErrUnknownBearer
	}
	return h.Presentation.Render(values)
}

func (HostToken) identify(*http.Request, *forwarding) {}

// None sends no credential.
type None struct{}

func (None) ofSender() bool { return false }

func (None) render(oauth.HostToken) (secret.Credentials, error) {
	return secret.Credentials{}, nil
}

func (None) identify(*http.Request, *forwarding) {}

// Static sends one secret for all callers, and identifies the caller in headers that are signed
// with another secret.
type Static struct {
	Secret       string
	Presentation secret.Presentation
	Signer       Signer
	Resource     oauth.Resource
}

func (Static) ofSender() bool { return false }

func (s Static) render(oauth.HostToken) (secret.Credentials, error) {
	return s.Presentation.Render(credential.Values{credential.Token: s.Secret})
}

func (s Static) identify(out *http.Request, x *forwarding) {
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

// encode percent-encodes a text for a header; decodeURIComponent and urllib.parse.unquote decode
// it.
func encode(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// Signer signs the headers that identify the caller.
type Signer struct {
	Key []byte // 32 bytes or more
	Now func() time.Time
}

// component is a component of the signature base (RFC 9421 §2) and its header; @method has none.
type component struct{ name, header string }

// components are the signed components in their order. They include the digest of the body, so that
// the signature is not valid for another body.
var components = []component{
	{`"@method"`, ""}, {`"content-digest"`, "Content-Digest"},
	{`"x-pasteport-subject"`, ownPrefix + "Subject"}, {`"x-pasteport-roles"`, ownPrefix + "Roles"},
	{`"x-pasteport-client"`, ownPrefix + "Client"}, {`"x-pasteport-grant"`, ownPrefix + "Grant"},
	{`"x-pasteport-resource"`, ownPrefix + "Resource"},
}

// parametersPrefix is the beginning of the signature parameters.
var parametersPrefix = func() string {
	var names []string
	for _, c := range components {
		names = append(names, c.name)
	}
	return "(" + strings.Join(names, " ") + ");created="
}()

// sign adds an HTTP message signature with HMAC-SHA256 (RFC 9421 §3.3.3) over components, with the
// label pasteport.
func (s Signer) sign(out *http.Request, body []byte) {
	digest := sha256.Sum256(body)
	out.Header.Set("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(digest[:])+":") // RFC 9530
	parameters := parametersPrefix + strconv.FormatInt(s.Now().Unix(), 10) + `;keyid="pasteport";alg="hmac-sha256"`
	mac := hmac.New(sha256.New, s.Key)
	_, _ = io.WriteString(mac, signatureBase(out, parameters))
	out.Header.Set("Signature-Input", "pasteport="+parameters)
	out.Header.Set("Signature", "pasteport=:"+base64.StdEncoding.EncodeToString(mac.Sum(nil))+":")
}

// signatureBase returns the text that is signed (RFC 9421 §2.5).
func signatureBase(out *http.Request, parameters string) string {
	var base strings.Builder
	for _, c := range components {
		value := out.Method
		if c.header != "" {
			value = out.Header.Get(c.header)
		}
		base.WriteString(c.name + ": " + value + "\n")
	}
	base.WriteString(`"@signature-params": ` + parameters)
	return base.String()
}

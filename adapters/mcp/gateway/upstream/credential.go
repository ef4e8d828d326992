package upstream

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

// isOfSender reports whether the credential is the sender's own, so that a 401 concerns the sender
// and not the gateway.
func (u *Upstream) isOfSender() bool { return u.config.Credential == gateway.CredentialHostToken }

// credentials returns what presents the credential of a caller, and what finds its long secrets. It
// fails with oauth.ErrUnknownBearer for values that the fields do not accept any more.
func (u *Upstream) credentials(host oauth.HostToken) (presented secret.Credentials, secrets credential.Finder,
	err error) {
	values, err := u.config.Values(host)
	if values == nil {
		return nil, secrets, err
	}
	presented, err = u.presentation.Render(values)
	return presented, u.config.Fields().Finder(values), err
}

// identify adds the headers that identify the caller to a request with the credential for all
// callers, and signs them.
func (u *Upstream) identify(out *http.Request, sender oauth.Caller, body []byte) {
	if u.config.Credential != gateway.CredentialStatic {
		return
	}
	header := out.Header
	header.Set(ownPrefix+"Subject", secret.Escape(sender.Subject))
	roles := make([]string, 0, len(sender.Roles))
	for _, role := range sender.Roles {
		roles = append(roles, secret.Escape(role))
	}
	header.Set(ownPrefix+"Roles", strings.Join(roles, ","))
	header.Set(ownPrefix+"Client", secret.Escape(sender.Client.String()))
	header.Set(ownPrefix+"Grant", secret.Escape(sender.Grant))
	header.Set(ownPrefix+"Resource", secret.Escape(u.options.Resource.String()))
	sign(out, body, []byte(u.config.SigningSecret), u.config.Now())
}

// components are the signed components (RFC 9421 §2) in their order: the method and headers. They
// include the digest of the body, so that the signature is not valid for another body.
var components = []string{
	"@method", "content-digest", "x-pasteport-subject", "x-pasteport-roles", "x-pasteport-client", "x-pasteport-grant",
	"x-pasteport-resource",
}

// parametersPrefix is the beginning of the signature parameters.
var parametersPrefix = `("` + strings.Join(components, `" "`) + `");created=`

// sign adds an HTTP message signature with HMAC-SHA256 (RFC 9421 §3.3.3) over components, with the
// label pasteport.
func sign(out *http.Request, body, key []byte, now time.Time) {
	digest := sha256.Sum256(body)
	out.Header.Set("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(digest[:])+":") // RFC 9530
	parameters := parametersPrefix + strconv.FormatInt(now.Unix(), 10) + `;keyid="pasteport";alg="hmac-sha256"`
	mac := hmac.New(sha256.New, key) // of the signature base (RFC 9421 §2.5)
	for _, name := range components {
		value := out.Header.Get(name)
		if name == "@method" {
			value = out.Method
		}
		_, _ = io.WriteString(mac, `"`+name+`": `+value+"\n")
	}
	_, _ = io.WriteString(mac, `"@signature-params": `+parameters)
	out.Header.Set("Signature-Input", "pasteport="+parameters)
	out.Header.Set("Signature", "pasteport=:"+base64.StdEncoding.EncodeToString(mac.Sum(nil))+":")
}

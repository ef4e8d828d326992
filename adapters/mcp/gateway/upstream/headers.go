package upstream

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	requestIDHeader = "X-Request-Id"
	ownPrefix       = "X-Pasteport-"
)

// forwardedHeaders are forwarded besides those of MCP. It is an allow list, because no list could
// have all headers in which frameworks look for a user.
var forwardedHeaders = []string{"Accept", "Accept-Language", "Last-Event-Id", "User-Agent", "Traceparent", "Tracestate"}

// requestHeader returns the header of a request to the upstream.
func (u *Upstream) requestHeader(from http.Header, session string, hasBody bool) http.Header {
	header := http.Header{"Accept-Encoding": {"identity"}, "User-Agent": nil} // without that of net/http
	for name, values := range from {
		isName := func(other string) bool { return strings.EqualFold(other, name) }
		isAllowed := strings.HasPrefix(name, "Mcp-") && name != message.SessionHeader ||
			slices.Contains(forwardedHeaders, name) || slices.ContainsFunc(u.config.Headers, isName)
		isOfConnection := httpguts.HeaderValuesContainsToken(from["Connection"], name)
		if isAllowed && !isOfConnection && !strings.Contains(name, "_") { // which CGI, WSGI and PHP read as a hyphen
			header[name] = values
		}
	}
	if session != "" {
		header.Set(message.SessionHeader, session)
	}
	if hasBody {
		header.Set("Content-Type", "application/json") // the guard has checked the media type
	}
	return header
}

// passedBack are response headers that a client gets besides Mcp-* and RateLimit-*. It is an allow
// list, because other headers may act on the whole origin of the gateway, or lead clients past it.
var passedBack = []string{
	"Content-Type", "Content-Language", "Content-Length", "Content-Encoding", "Cache-Control", "Date", "Etag",
	"Last-Modified", "Retry-After", "Traceparent",
}

// cleanAnswer removes all headers that are not passed back.
func cleanAnswer(header http.Header) {
	maps.DeleteFunc(header, func(name string, _ []string) bool {
		return !slices.Contains(passedBack, name) && !strings.HasPrefix(name, "Mcp-") &&
			!strings.HasPrefix(name, "Ratelimit")
	})
	mediaType, _, err := mime.ParseMediaType(strings.Join(header.Values("Content-Type"), ","))
	isMessage := message.IsEventStream(header) || err == nil && mediaType == "application/json"
	if header.Get("Content-Type") != "" && !isMessage { // browsers run no text
		header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	// Each response is for one caller. Without Cache-Control, no shared cache stores the response
	// to an authorized request (RFC 9111 §3.5).
	if header.Get("Cache-Control") != "" {
		header.Set("Cache-Control", "no-store, no-transform")
	}
	header.Set("X-Content-Type-Options", "nosniff")
}

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

// identify adds the headers that identify the caller, and signs them, if all callers share one
// credential.
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
	// An HTTP message signature with HMAC-SHA256 (RFC 9421 §3.3.3) over components.
	digest := sha256.Sum256(body)
	header.Set("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(digest[:])+":") // RFC 9530
	parameters := parametersPrefix + strconv.FormatInt(u.config.Now().Unix(), 10) +
		`;keyid="pasteport";alg="hmac-sha256"`
	mac := hmac.New(sha256.New, []byte(u.config.SigningSecret)) // of the signature base (RFC 9421 §2.5)
	for _, name := range components {
		value := header.Get(name)
		if name == "@method" {
			value = out.Method
		}
		_, _ = io.WriteString(mac, `"`+name+`": `+value+"\n")
	}
	_, _ = io.WriteString(mac, `"@signature-params": `+parameters)
	header.Set("Signature-Input", "pasteport="+parameters)
	header.Set("Signature", "pasteport=:"+base64.StdEncoding.EncodeToString(mac.Sum(nil))+":")
}

// components are the signed components (RFC 9421 §2) in their order: the method and headers. They
// include the digest of the body, so that the signature is not valid for another body.
var components = []string{
	"@method", "content-digest", "x-pasteport-subject", "x-pasteport-roles", "x-pasteport-client", "x-pasteport-grant",
	"x-pasteport-resource",
}

// parametersPrefix is the beginning of the signature parameters.
var parametersPrefix = `("` + strings.Join(components, `" "`) + `");created=`

package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

const (
	serverWellKnown = "/.well-known/oauth-authorization-server"

	expiryWarning = 14 * 24 * time.Hour
	clockWarning  = 30 * time.Second
	clockFailure  = 2 * time.Minute
)

// metadataChecks follow a client to the authorization server.
var metadataChecks = []check{
	{
		id:       "reach.connect",
		question: "Can the server be reached, with a certificate that clients trust?",
		why: "Tokens travel on this connection; clients give up when its certificate is invalid, most of them " +
			"without a message.",
		run: (*examination).connect,
	},
	{
		id:       "reach.clock",
		question: "Is the server's clock right?",
		needs:    []string{"reach.connect"},
		why: "Codes, tokens and signed assertions are valid for minutes. With a wrong clock they expire too early or " +
			"too late, and the certificates of other servers look invalid.",
		run: (*examination).clock,
	},
	{
		id:       "challenge.header",
		question: "Is a request without a token refused with one challenge?",
		needs:    []string{"reach.connect"},
		why: "Clients start the login only after 401, and find it with the challenge (RFC 9728 §5.1). Many read only " +
			"one header, or join two into one text.",
		run: (*examination).challenged,
	},
	{
		id:       "challenge.stream",
		question: "Does a GET without a token get an error status?",
		needs:    []string{"reach.connect"},
		why: "Older clients start with GET. A page, a redirect or a cache of the site may respond to GET although " +
			"POST works.",
		run: (*examination).refusesStream,
	},
	{
		id:       "challenge.slash",
		question: "Does the URL work with and without a trailing slash?",
		needs:    []string{"challenge.header"},
		why: "People type both. Clients do not follow a redirect with a token or a body, and a page instead of the " +
			"challenge stops the login.",
		run: (*examination).slash,
	},
	{
		id:       "resource.metadata",
		question: "Does the metadata of the MCP server name the URL that people enter?",
		needs:    []string{"challenge.header"},
		why: "It names the authorization server. Clients follow no redirect to it, compare the URL byte for byte " +
			"(RFC 9728 §3.3), and use it as the audience of the token.",
		run: (*examination).readResource,
	},
	{
		id:       "server.metadata",
		question: "Does the metadata of the authorization server fit?",
		needs:    []string{"resource.metadata"},
		why: "It names every endpoint of the login (RFC 8414). Clients compare the issuer in both documents, so that " +
			"one server cannot impersonate another.",
		run: (*examination).readServer,
	},
}

func (e *examination) connect(ctx context.Context) finding {
	if e.endpoint.Scheme == "http" && !isLoopback(e.endpoint) {
		return fail("Put a TLS server in front, and give people the https URL.",
			"the URL is http, and not on this computer")
	}
	if e.first = e.call(ctx, e.endpoint.String()); e.first.err != nil {
		return fail(mendConnection(e.first.err), "%s", e.first)
	}
	if e.first.tls == nil {
		return ok("%s", e.first)
	}
	until := e.first.tls.PeerCertificates[0].NotAfter
	if time.Until(until) < expiryWarning {
		return warn("Renew the certificate now, and find out why automatic renewal failed.",
			"the certificate is valid until %s only", until.UTC().Format("2 January 2006"))
	}
	return ok("%s; the certificate is valid until %s", e.first, until.UTC().Format("2 January 2006"))
}

func mendConnection(err error) string {
	var unknown *net.DNSError
	var network *net.OpError
	var invalid x509.CertificateInvalidError
	var elsewhere x509.HostnameError
	var untrusted x509.UnknownAuthorityError
	switch {
	case errors.As(err, &unknown):
		return "Check the spelling, and publish a DNS record for the name."
	case errors.As(err, &network) && network.Op == "dial":
		return "Start the server, and open its port in every firewall on the path."
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "Renew the certificate, and let the server load the new one. If it was renewed, check the clock of " +
			"this computer."
	case errors.As(err, &elsewhere):
		return "Get a certificate for the name in the URL, or give people a URL with the name in the certificate."
	case errors.As(err, &untrusted):
		return "Serve the whole chain, with the intermediate certificates, from a public authority. " +
			"If only people with your own authority connect, name it with --ca."
	}
	return "Check that the server runs, that the proxy in front of it reaches it, and that this port has TLS 1.2 or " +
		"newer."
}

// initialize is the first message of a client.
const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{` +
	`"protocolVersion":"2025-06-18","capabilities":{},` +
	`"clientInfo":{"name":"pasteport-doctor","version":"1"}}}`

// call sends the first message of a client to the MCP server.
func (e *examination) call(ctx context.Context, address string, header ...string) answer {
	return e.wire.send(ctx, http.MethodPost, address, initialize,
		append([]string{"Content-Type", jsonType, "Accept", jsonType + ", " + eventStream}, header...)...)
}

func (e *examination) clock(context.Context) finding {
	const mend = "Set the clock with a time service (chrony, systemd-timesyncd). If the server's clock is right, " +
		"correct this computer's."
	date, err := http.ParseTime(e.first.header.Get("Date"))
	if err != nil {
		return skip("because the response has no valid Date header")
	}
	ahead := time.Until(date).Round(time.Second)
	where := "ahead of"
	if ahead < 0 {
		where = "behind"
	}
	switch off := ahead.Abs(); {
	case off >= clockFailure:
		return fail(mend, "its clock is %s %s this computer's", off, where)
	case off >= clockWarning:
		return warn(mend, "its clock is %s %s this computer's", off, where)
	}
	return ok("its clock agrees with this computer's")
}

func (e *examination) challenged(context.Context) finding {
	headers := e.first.header.Values("WWW-Authenticate")
	switch a := e.first; {
	case a.redirects():
		return fail("Return 401 instead of a redirect to a login page. If the address has moved, give people the "+
			"new one.", "%s", a)
	case a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed:
		return fail("Use the URL of the MCP endpoint itself, which often ends with /mcp; or let the proxy pass "+
			"POST to it.", "%s", a)
	case a.status >= http.StatusInternalServerError:
		return fail("See the logs of the server and of the proxy; the proxy may not reach the server.", "%s", a)
	case a.status != http.StatusUnauthorized:
		return fail("Put the bearer check in front of the MCP endpoint, so that a request without a token gets 401. "+
			"Also look for a firewall that responds instead.", "%s", a)
	case len(headers) == 0:
		return fail("The proxy must not remove WWW-Authenticate.", "401 without WWW-Authenticate")
	case len(headers) > 1:
		return fail("Send the header once. The proxy may add a second one, or two layers of the site may both "+
			"check tokens.", "%d WWW-Authenticate headers: %s", len(headers), strings.Join(headers, " | "))
	}
	challenges, err := oauthex.ParseWWWAuthenticate(headers)
	if err != nil || len(challenges) != 1 || !strings.EqualFold(challenges[0].Scheme, "bearer") ||
		challenges[0].Params["resource_metadata"] == "" {
		return fail("Let the proxy pass the header unchanged.", "%q is not one Bearer challenge with "+
			"resource_metadata", headers[0])
	}
	e.challenge = challenges[0].Params["resource_metadata"]
	return ok("%s", headers[0])
}

func (e *examination) refusesStream(ctx context.Context) finding {
	a := e.wire.get(ctx, e.endpoint.String(), "Accept", eventStream)
	if a.err != nil || a.status < 400 || a.status >= 500 {
		return fail("Let the proxy pass GET of the MCP endpoint to the server, past pages and caches.",
			"%s as %q", a, a.header.Get("Content-Type"))
	}
	return ok("%d", a.status)
}

// slash sends the request to the URL with or without the trailing slash; the root of a site has
// only one spelling.
func (e *examination) slash(ctx context.Context) finding {
	other := strings.TrimSuffix(e.endpoint.String(), "/")
	if strings.Trim(e.endpoint.Path, "/") == "" || e.endpoint.RawQuery != "" {
		return ok("the URL has one spelling")
	}
	if other == e.endpoint.String() {
		other += "/"
	}
	if a := e.call(ctx, other); a.status != http.StatusUnauthorized {
		return warn("Serve the MCP endpoint at "+other+" too, without a redirect; or give clients the other URL only.",
			"%s", a)
	}
	return ok("401 for %s too", other)
}

const mendPublicURL = "Configure the server's public https URL (Pasteport: Issuer, or serve --issuer), or give " +
	"people the URL with this host. A server that builds URLs from requests, which reach it as http behind the " +
	"proxy, needs the proxy to pass the Host header on."

func (e *examination) readResource(ctx context.Context) (v finding) {
	typed := e.endpoint.String()
	if !sameOrigin(e.challenge, typed) {
		return fail(mendPublicURL, "resource_metadata in the challenge is %q, but people enter %q", e.challenge, typed)
	}
	if e.resource, v = e.metadata(ctx, e.challenge); v.Status != statusOK {
		return v
	}
	if named := e.resource.text("resource"); named != typed {
		return fail("Give people the published URL, or configure the one that they enter; even a trailing slash "+
			"matters.", "resource is %q, but people enter %q", named, typed)
	}
	e.issuer = strings.Join(e.resource.list("authorization_servers"), " ")
	issuer, err := url.Parse(e.issuer)
	if err != nil || issuer.Host == "" || strings.HasSuffix(e.issuer, "/") || strings.Contains(e.issuer, " ") ||
		issuer.Scheme != "https" && (e.endpoint.Scheme == "https" || !isLoopback(issuer)) {
		return fail(mendPublicURL, "authorization_servers has %q, which is not one https URL without a trailing slash",
			e.issuer)
	}
	return ok("%s", e.challenge)
}

// metadata is wire.document for a document of the server.
func (e *examination) metadata(ctx context.Context, target string) (document, finding) {
	d, v := e.wire.document(ctx, target)
	if v.Status == statusOK && mediaTypeOf(d.header) != jsonType {
		v = fail("Let the proxy pass Content-Type: application/json.", "%s is served as %q", target,
			d.header.Get("Content-Type"))
	}
	return d, v
}

// required are the values of lists without which no client logs in.
var required = [][2]string{
	{"response_types_supported", "code"},
	{"code_challenge_methods_supported", "S256"},
	{"token_endpoint_auth_methods_supported", "none"},
}

func (e *examination) readServer(ctx context.Context) (v finding) {
	const mend = "Let the proxy pass the document unchanged, and check that it is of the right server."
	issuer, _ := url.Parse(e.issuer) // parsed by readResource
	if e.server, v = e.metadata(ctx, originOf(issuer)+serverWellKnown+issuer.EscapedPath()); v.Status != statusOK {
		return v
	}
	if named := e.server.text("issuer"); named != e.issuer {
		return fail("Configure the server's public URL (Pasteport: Issuer, or serve --issuer). "+
			"Both documents must have the same issuer, byte for byte.",
			"issuer is %q, the metadata of the MCP server has %q", named, e.issuer)
	}
	for _, name := range []string{"authorization_endpoint", "token_endpoint", "revocation_endpoint"} {
		if target := e.server.text(name); !sameOrigin(target, e.issuer) {
			return fail(mend, "%s is %q, which is not at the issuer", name, target)
		}
	}
	for _, list := range required {
		if values := e.server.list(list[0]); !slices.Contains(values, list[1]) {
			return fail(mend, "%s lacks %s: %q", list[0], list[1], values)
		}
	}
	return v
}

package doctor

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

func connect(ctx context.Context, p *probe) (seen, fix string) {
	if p.endpoint.Scheme == "http" && !isLoopback(p.endpoint) {
		return "the URL is http, and not on this computer", "Put a TLS server in front, and give people the https URL."
	}
	var err error
	if p.first, err = p.initialize(ctx); err != nil {
		return err.Error(), connectionFix(err)
	}
	date, err := http.ParseTime(p.first.Header.Get("Date"))
	if off := time.Until(date).Round(time.Second).Abs(); err == nil && off >= 2*time.Minute {
		return fmt.Sprintf("the clocks of the server and of this computer differ by %s", off),
			"Set the clock with a time service (chrony, systemd-timesyncd): codes and tokens are valid for minutes. " +
				"If the server's clock is right, correct this computer's."
	}
	seen = p.first.String()
	if p.first.TLS != nil {
		until := p.first.TLS.PeerCertificates[0].NotAfter
		seen += "; the certificate is valid until " + until.UTC().Format("2 January 2006")
	}
	return seen, ""
}

func connectionFix(err error) string {
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

func challenge(ctx context.Context, p *probe) (seen, fix string) {
	headers := p.first.Header.Values("WWW-Authenticate")
	switch a := p.first; {
	case a.redirects():
		return a.String(), "Return 401 instead of a redirect to a login page. If the address has moved, give people " +
			"the new one."
	case a.StatusCode == http.StatusNotFound || a.StatusCode == http.StatusMethodNotAllowed:
		return a.String(), "Use the URL of the MCP endpoint itself, which often ends with /mcp; or let the proxy " +
			"pass POST to it."
	case a.StatusCode >= http.StatusInternalServerError:
		return a.String(), "See the logs of the server and of the proxy; the proxy may not reach the server."
	case a.StatusCode != http.StatusUnauthorized:
		return a.String(), "Put the bearer check in front of the MCP endpoint, so that a request without a token " +
			"gets 401. Also look for a firewall that responds instead."
	case len(headers) == 0:
		return "401 without WWW-Authenticate", "The proxy must not remove WWW-Authenticate."
	case len(headers) > 1:
		return fmt.Sprintf("%d WWW-Authenticate headers: %s", len(headers), strings.Join(headers, " | ")),
			"Send the header once. The proxy may add a second one, or two layers of the site may both check tokens."
	}
	challenges, err := oauthex.ParseWWWAuthenticate(headers)
	if err != nil || len(challenges) != 1 || !strings.EqualFold(challenges[0].Scheme, "bearer") ||
		challenges[0].Params["resource_metadata"] == "" {
		return fmt.Sprintf("%q is not one Bearer challenge with resource_metadata", headers[0]),
			"Let the proxy pass the header unchanged."
	}
	p.challenge = challenges[0].Params["resource_metadata"]
	const getFix = "Let the proxy pass GET of the MCP endpoint to the server, past pages and caches."
	a, err := p.send(ctx, http.MethodGet, p.endpoint.String(), "", "Accept", eventStream)
	switch {
	case err != nil:
		return err.Error(), getFix
	case !a.isRefusal():
		return fmt.Sprintf("%s as %q", a, a.mediaType()), getFix
	}
	return headers[0], ""
}

const publicURLFix = "Configure the server's public https URL (Pasteport: Issuer, or serve --issuer), or give " +
	"people the URL with this host. A server that builds URLs from requests, which reach it as http behind the " +
	"proxy, needs the proxy to pass the Host header on."

func resource(ctx context.Context, p *probe) (seen, fix string) {
	typed := p.endpoint.String()
	if !sameOrigin(p.challenge, typed) {
		return fmt.Sprintf("resource_metadata in the challenge is %q, but people enter %q", p.challenge, typed),
			publicURLFix
	}
	if seen, fix = p.document(ctx, p.challenge, &p.resource); fix != "" {
		return seen, fix
	}
	if p.resource.Resource != typed {
		return fmt.Sprintf("resource is %q, but people enter %q", p.resource.Resource, typed),
			"Give people the published URL, or configure the one that they enter; even a trailing slash matters."
	}
	issuer := strings.Join(p.resource.AuthorizationServers, " ")
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || strings.HasSuffix(issuer, "/") || strings.Contains(issuer, " ") ||
		u.Scheme != "https" && (p.endpoint.Scheme == "https" || !isLoopback(u)) {
		return fmt.Sprintf("authorization_servers has %q, which is not one https URL without a trailing slash", issuer),
			publicURLFix
	}
	return seen, ""
}

// document decodes the JSON object at the target into members.
func (p *probe) document(ctx context.Context, target string, members any) (seen, fix string) {
	const pass = "Let the proxy pass /.well-known/oauth-* to the server"
	a, err := p.send(ctx, http.MethodGet, target, "", "Accept", jsonType)
	switch {
	case err != nil:
		return err.Error(), "Make this URL return the document without delay."
	case a.redirects():
		return a.String(), "Serve the document itself at this URL, and exempt /.well-known/* from redirects " +
			"(trailing slash, www, language, login)."
	case a.StatusCode != http.StatusOK:
		return a.String(), pass + "."
	case json.Unmarshal(a.body, members) != nil:
		return target + " returned a body that is not a JSON object of metadata",
			pass + "; one of the site's own pages may be served in its place."
	case a.mediaType() != jsonType:
		return fmt.Sprintf("%s is served as %q", target, a.Header.Get("Content-Type")),
			"Let the proxy pass Content-Type: application/json."
	}
	return target, ""
}

func server(ctx context.Context, p *probe) (seen, fix string) {
	issuer, _ := url.Parse(p.resource.AuthorizationServers[0]) // resource has parsed it
	var m oauthex.AuthServerMeta
	if seen, fix = p.document(ctx, serverMetadataURL(issuer), &m); fix != "" {
		return seen, fix
	}
	if m.Issuer != issuer.String() {
		return fmt.Sprintf("issuer is %q, the metadata of the MCP server has %q", m.Issuer, issuer),
			"Configure the server's public URL (Pasteport: Issuer, or serve --issuer). Both documents must have the " +
				"same issuer, byte for byte."
	}
	fix = "Let the proxy pass the document unchanged, and check that it is of the right server."
	for _, endpoint := range []struct{ name, url string }{
		{"authorization_endpoint", m.AuthorizationEndpoint},
		{"token_endpoint", m.TokenEndpoint},
		{"revocation_endpoint", m.RevocationEndpoint},
	} {
		if !sameOrigin(endpoint.url, m.Issuer) {
			return fmt.Sprintf("%s is %q, which is not at the issuer", endpoint.name, endpoint.url), fix
		}
	}
	switch {
	case !slices.Contains(m.CodeChallengeMethodsSupported, "S256"):
		return fmt.Sprintf("code_challenge_methods_supported lacks S256: %q", m.CodeChallengeMethodsSupported), fix
	case !slices.Contains(m.TokenEndpointAuthMethodsSupported, "none"):
		return fmt.Sprintf("token_endpoint_auth_methods_supported lacks none: %q",
			m.TokenEndpointAuthMethodsSupported), fix
	}
	p.server = &m
	return seen, ""
}

func serverMetadataURL(issuer *url.URL) string {
	return originOf(issuer) + "/.well-known/oauth-authorization-server" + issuer.EscapedPath()
}

// token sends a code that the server must refuse.
func token(ctx context.Context, p *probe) (seen, fix string) {
	fix = "Let the proxy pass POST with its body to the token endpoint, without redirect or login page."
	a, err := p.post(ctx, p.server.TokenEndpoint, url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {"pasteport-doctor-has-no-code"},
		"client_id":     {"https://client.invalid/pasteport-doctor.json"},
		"code_verifier": {"pasteport-doctor-has-no-verifier-for-this-code"},
		"redirect_uri":  {redirect},
	})
	if err != nil {
		return err.Error(), fix
	}
	var body struct{ Error string }
	_ = json.Unmarshal(a.body, &body)
	seen = fmt.Sprintf("%s to an invalid code, as %q and error %q", a, a.Header.Get("Content-Type"), body.Error)
	switch {
	case !a.isRefusal() || body.Error == "" || a.mediaType() != jsonType:
		return seen, fix
	case !strings.Contains(strings.ToLower(a.Header.Get("Cache-Control")), "no-store"):
		return fmt.Sprintf("%s has Cache-Control %q", a, a.Header.Get("Cache-Control")),
			"Let the proxy keep Cache-Control: no-store of every response of the token endpoint."
	}
	return seen, ""
}

func cors(ctx context.Context, p *probe) (seen, fix string) {
	page := cmp.Or(p.origin, "https://pasteport-doctor.invalid") // no server allows this origin by name
	issuer, _ := url.Parse(p.server.Issuer)
	const version, contentType, authorization = "MCP-Protocol-Version", "Content-Type", "Authorization"
	for _, request := range [][]string{ // method, URL and headers
		{http.MethodGet, p.challenge, version, contentType},
		{http.MethodGet, serverMetadataURL(issuer), version, contentType},
		{http.MethodPost, p.server.TokenEndpoint, authorization, contentType},
	} {
		if _, seen := p.from(ctx, page, request[0], request[1], request[2:]...); seen != "" {
			return seen, "Let the proxy keep Access-Control-Allow-Origin: * of the documents and of every response " +
				"of the token endpoint, errors too, and pass OPTIONS to the server."
		}
	}
	fix = "Allow the origin of the page (" + page + ") at the MCP endpoint (Pasteport: the setting allowed-origins, " +
		"in your own program WithAllowedOrigins), let the proxy pass OPTIONS, and keep " +
		"Access-Control-Expose-Headers: WWW-Authenticate, Mcp-Session-Id."
	a, seen := p.from(ctx, page, http.MethodPost, p.endpoint.String(), authorization, contentType, version)
	switch {
	case a.Response != nil && a.StatusCode == http.StatusForbidden && p.origin == "":
		return "pages can log in; the MCP endpoint refuses other origins with 403: --origin checks an allowed one", ""
	case seen != "":
		return seen, fix
	case !lists(a, "Access-Control-Expose-Headers", "WWW-Authenticate", "Mcp-Session-Id"):
		return "pages cannot read WWW-Authenticate and Mcp-Session-Id", fix
	}
	return "the page " + page + " can", ""
}

// from sends a request of a web page, and then the preflight that a browser would send first. It
// returns the answer to the request, and what keeps the page from sending it or reading the answer.
func (p *probe) from(ctx context.Context, page, method, target string, headers ...string) (a answer,
	hindrance string) {
	a, err := p.send(ctx, method, target, "", "Origin", page)
	if err != nil {
		return a, err.Error()
	}
	if !allows(a, page) {
		return a, fmt.Sprintf("%s to the page %s has Access-Control-Allow-Origin %q", a, page,
			a.Header.Get("Access-Control-Allow-Origin"))
	}
	preflight, err := p.send(ctx, http.MethodOptions, target, "", "Origin", page,
		"Access-Control-Request-Method", method, "Access-Control-Request-Headers", strings.Join(headers, ","))
	if err != nil {
		return a, err.Error()
	}
	if preflight.StatusCode >= 300 || !allows(preflight, page) ||
		!lists(preflight, "Access-Control-Allow-Headers", headers...) {
		return a, fmt.Sprintf("%s to a preflight, and does not allow %s", preflight, strings.Join(headers, ", "))
	}
	return a, ""
}

// allows reports whether the page may read the response.
func allows(a answer, page string) bool {
	allowed := a.Header.Get("Access-Control-Allow-Origin")
	return allowed == "*" || allowed == page
}

// lists reports whether the response header lists the names. The wildcard * does not cover
// Authorization.
func lists(a answer, header string, names ...string) bool {
	listed := strings.Split(strings.Join(a.Header.Values(header), ","), ",")
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(listed, func(value string) bool {
			value = strings.TrimSpace(value)
			return strings.EqualFold(value, name) || value == "*" && name != "Authorization"
		})
	})
}

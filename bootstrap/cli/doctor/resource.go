package doctor

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	resourceWellKnown = "/.well-known/oauth-protected-resource"
	jsonType          = "application/json"
	offlineAccess     = "offline_access"
)

var resourceChecks = []check{
	{
		id: "resource.document", question: "Can the resource metadata be read?", needs: []string{"reach.answer"},
		why: "It names the authorization server (RFC 9728 §3). The official TypeScript SDK follows no redirect to " +
			"another origin.",
		breaks: everyClient, run: (*examination).readResource,
	},
	{
		id: "resource.type", question: "Is it served as application/json?", needs: []string{"resource.document"},
		why: "RFC 9728 §3.2 requires this content type.", breaks: []string{goSDK + ", which ignore the document"},
		run: func(e *examination, _ context.Context) checkResult { return typeOf(e.resource) },
	},
	{
		id: "resource.addresses", question: "Can clients use the URLs in it?", needs: []string{"resource.document"},
		why: "Behind a TLS proxy, a server that builds URLs from the request publishes http or an internal name. " +
			"Clients refuse them, " +
			"cannot reach them, or send codes unencrypted.",
		breaks: everyClient, run: (*examination).addresses,
	},
	{
		id: "resource.identifier", question: "Is `resource` exactly the URL that people enter?",
		needs: []string{"resource.addresses"},
		why: "Clients compare it byte for byte (RFC 9728 §3.3) and use it as the audience of the token. With an " +
			"extra slash, or the origin " +
			"instead of the endpoint, they reject the document or the token.",
		breaks: []string{goSDK + ", which ignore the document", vsCode, claude}, run: (*examination).identifier,
	},
	{
		id: "resource.well_known", question: "Is it at the well-known URL of the endpoint?",
		needs: []string{"resource.document"},
		why: "Clients without a challenge insert the well-known path before the path of the endpoint (RFC 9728 " +
			"§3.1).",
		breaks: []string{"clients that start without a challenge"}, run: (*examination).wellKnown,
	},
	{
		id: "resource.root",
		question: "Does the well-known URL without a path have this document, or that of another " +
			"MCP server of the site?",
		needs: []string{"resource.document"},
		why: "Clients try it if the other URL has no document; a page, a redirect or another document " +
			"misleads them.",
		breaks: []string{"clients that try the root"},
		run:    (*examination).root,
	},
	{
		id: "resource.servers", question: "Does it name an authorization server?",
		needs: []string{"resource.addresses"},
		why:   "Clients take the first one and build its metadata URL from it; a trailing slash changes that URL.",
		breaks: []string{goSDK + ", which fail without one, and request a wrong URL if it has a trailing slash",
			"every client, if there is none"},
		run: (*examination).servers,
	},
	{
		id: "resource.scopes", question: "Does it list only scopes of the resource?",
		needs: []string{"resource.document"},
		why: "offline_access belongs in the metadata of the authorization server, which issues refresh tokens; " +
			"the MCP specification excludes it here.",
		breaks: []string{"clients that request all listed scopes"}, run: (*examination).scopes,
	},
}

// wellKnownURL returns the URL of the document for clients without a challenge.
func (e *examination) wellKnownURL() string { return wellKnownURL(e.Endpoint) }

// wellKnownURL returns the URL of a resource's document (RFC 9728 §3.1).
func wellKnownURL(resource *url.URL) string {
	path := resource.EscapedPath()
	if path == "/" {
		path = ""
	}
	return originOf(resource) + resourceWellKnown + path
}

func (e *examination) readResource(ctx context.Context) (v checkResult) {
	places := []string{e.wellKnownURL(), strings.TrimSuffix(e.wellKnownURL(), "/"),
		originOf(e.Endpoint) + resourceWellKnown}
	// Addresses reports a challenge of another origin.
	if named, err := url.Parse(e.challenge); err == nil && originOf(named) == originOf(e.Endpoint) {
		places = slices.Insert(places, 0, e.challenge)
	}
	for _, place := range slices.Compact(places) {
		if e.resource, v = e.wire.document(ctx, place); v.status == OK || e.resource.status != http.StatusNotFound {
			return v
		}
		if place == e.challenge {
			return fail("Publish the document at the resource_metadata URL in the challenge, or correct that URL: "+
				"clients with a challenge try no other URL.",
				"the document is not at the URL in the challenge: %s", e.resource)
		}
	}
	return fail("Publish the document at "+e.wellKnownURL()+
		", and let the proxy pass /.well-known/oauth-* to the server.",
		"not found; the last attempt: %s", e.resource)
}

// document reads a JSON object at the address, without redirects.
func (w *wire) document(ctx context.Context, place string) (document, checkResult) {
	a := w.get(ctx, place)
	d := parse(a)
	switch {
	case a.err != nil:
		return d, fail("Make this URL return the document without delay.", "%s", a)
	case a.redirects():
		return d, fail("Serve the document itself at this URL, and exempt /.well-known/* from redirects "+
			"(trailing slash, www, language, login).", "%s", a)
	case a.status != http.StatusOK:
		return d, fail("Let the proxy pass /.well-known/oauth-* to the server, which must return 200.", "%s", a)
	case d.malformed != nil:
		return d, fail("Serve the JSON document here; one of the site's own pages may be served in its place.", "%v",
			d.malformed)
	}
	return d, ok("%s", place)
}

func typeOf(d document) checkResult {
	const mend = "Send Content-Type: application/json. A static file without an extension needs a rule for it."
	if d.mediaType() != jsonType {
		return fail(mend, "%s is served as %q", d.url, d.header.Get("Content-Type"))
	}
	return ok("%s", d.header.Get("Content-Type"))
}

func (e *examination) addresses(context.Context) checkResult {
	published := map[string]string{"resource_metadata in the challenge": e.challenge,
		"resource": e.resource.text("resource")}
	for _, name := range []string{"resource_metadata in the challenge", "resource"} {
		if v, wrong := e.misplaced(name, published[name]); wrong {
			return v
		}
	}
	for _, issuer := range e.resource.list("authorization_servers") {
		if !isProtected(issuer) || e.Endpoint.Scheme == "https" && strings.HasPrefix(issuer, "http:") {
			return fail(mendScheme, "authorization_servers names %s, which is not https", issuer)
		}
	}
	return ok("all of them belong to %s", originOf(e.Endpoint))
}

const mendScheme = "Configure the server's public https URL (Pasteport: Issuer, or serve --issuer); it must not " +
	"build URLs from requests, " +
	"which reach it as http behind the proxy."

// misplaced reports whether a published URL of this endpoint has a wrong scheme or host; identifier
// checks the path.
func (e *examination) misplaced(name, published string) (checkResult, bool) {
	u, err := url.Parse(published)
	switch {
	case published == "" || err != nil || u.Host == "":
		return checkResult{}, false
	case u.Scheme == "http" && e.Endpoint.Scheme == "https":
		return fail(mendScheme, "%s is %s, but clients use https", name, published), true
	case !strings.EqualFold(u.Host, e.Endpoint.Host):
		return fail("Configure the server's public URL (Pasteport: Issuer, or serve --issuer); or give people the "+
			"URL with this host. "+
			"A server that uses the Host header needs the proxy to pass it on.", "%s is %s, on another host than %s",
			name, published, e.Endpoint.Host), true
	}
	return checkResult{}, false
}

func (e *examination) identifier(context.Context) checkResult {
	typed, named := e.Endpoint.String(), e.resource.text("resource")
	if named == typed {
		return ok("%s", named)
	}
	mend := fmt.Sprintf(
		"Publish %q as resource, and accept tokens for it; or, if the published one is right, give people %q.",
		typed, named)
	switch {
	case named == "":
		return fail(mend, "the member resource is missing")
	case strings.TrimSuffix(named, "/") == strings.TrimSuffix(typed, "/"):
		return fail(mend, "it is %q: only the trailing slash differs", named)
	case named == originOf(e.Endpoint) || named == originOf(e.Endpoint)+"/":
		return fail(mend, "it is %q: the origin, not the MCP endpoint", named)
	}
	return fail(mend, "it is %q", named)
}

func (e *examination) wellKnown(ctx context.Context) checkResult {
	if e.resource.url == e.wellKnownURL() {
		return ok("%s", e.wellKnownURL())
	}
	return e.same(ctx, e.wellKnownURL(),
		"Serve the same document here too; let the proxy pass /.well-known/oauth-* to the server.")
}

func (e *examination) root(ctx context.Context) checkResult {
	place := originOf(e.Endpoint) + resourceWellKnown
	if place == e.resource.url {
		return ok("it is the document that was read")
	}
	other := parse(e.wire.get(ctx, place))
	if other.status == http.StatusNotFound {
		return ok("not found, which is allowed")
	}
	if neighbour := other.text("resource"); e.isNeighbour(ctx, neighbour) {
		return ok("it describes %s, another MCP server of this site", neighbour)
	}
	return e.same(ctx, place, "Serve the same document here, or return 404.")
}

// isNeighbour reports whether the resource is another one of the same site,
// which has its own document.
func (e *examination) isNeighbour(ctx context.Context, resource string) bool {
	u, err := url.Parse(resource)
	if err != nil || !sameOrigin(resource, e.Endpoint.String()) ||
		strings.TrimSuffix(u.Path, "/") == strings.TrimSuffix(e.Endpoint.Path, "/") {
		return false
	}
	own, v := e.wire.document(ctx, wellKnownURL(u))
	return v.status == OK && own.text("resource") == resource
}

// same compares another copy of the document with the one that was read.
func (e *examination) same(ctx context.Context, place, mend string) checkResult {
	other, v := e.wire.document(ctx, place)
	switch {
	case v.status != OK:
		return warn(mend, "%s", v.seen)
	case strings.TrimSuffix(other.text("resource"), "/") != strings.TrimSuffix(e.resource.text("resource"), "/"):
		return warn(mend, "%s names %q as resource, %s names %q", place, other.text("resource"), e.resource.url,
			e.resource.text("resource"))
	}
	return ok("%s", place)
}

func (e *examination) servers(context.Context) checkResult {
	const mend = "List the issuer of the authorization server in authorization_servers, exactly as its own metadata " +
		"spells it, without a trailing slash."
	issuers := e.resource.list("authorization_servers")
	if len(issuers) == 0 {
		return fail(mend, "authorization_servers is missing or empty")
	}
	e.issuer = issuers[0]
	issuer, err := url.Parse(e.issuer)
	switch {
	case err != nil || issuer.Host == "" || issuer.RawQuery != "" || issuer.Fragment != "":
		return fail(mend, "%q is not a valid issuer", e.issuer)
	case strings.HasSuffix(e.issuer, "/"):
		return warn(mend, "%q ends with a slash", e.issuer)
	}
	return ok("%s", strings.Join(issuers, ", "))
}

func (e *examination) scopes(context.Context) checkResult {
	scopes := e.resource.list("scopes_supported")
	if slices.Contains(scopes, offlineAccess) {
		return warn("Remove offline_access from scopes_supported here; list it in the metadata of the authorization "+
			"server.", "%s", strings.Join(scopes, " "))
	}
	return ok("scopes_supported: %s", strings.Join(scopes, " "))
}

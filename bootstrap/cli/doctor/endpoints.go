package doctor

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pquerna/cachecontrol/cacheobject"
)

const maxMetadataAge = 24 * time.Hour // in the caches of clients and proxies

var endpointChecks = []check{
	{
		id:       "authorize.page",
		question: "Does the authorization endpoint respond?",
		needs:    []string{"server.metadata"},
		why:      "The client sends the person's browser there.",
		run:      (*examination).authorizes,
	},
	{
		id:       "token.answer",
		question: "Does the token endpoint respond?",
		needs:    []string{"server.metadata"},
		why: "Clients POST the code there, follow no redirect, and expect OAuth errors as JSON (RFC 6749 §5.2). " +
			"After any other response they discard their tokens or open the browser again.",
		run: (*examination).tokens,
	},
	{
		id:       "cache.headers",
		question: "Are tokens kept out of caches, and documents cached for at most a day?",
		needs:    []string{"token.answer"},
		why: "A proxy may serve a token from its cache to another client (RFC 6749 §5.1). Every connection starts " +
			"with the documents, and a change must reach clients within a day.",
		run: (*examination).caches,
	},
}

func (e *examination) authorizes(ctx context.Context) finding {
	a := e.wire.get(ctx, e.server.text("authorization_endpoint"), "Accept", "text/html")
	if a.err != nil || a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed ||
		a.status >= http.StatusInternalServerError {
		return fail("Let the proxy pass GET and POST of the authorization endpoint to the server, and read the "+
			"server's log.", "%s", a)
	}
	return ok("%d to a request without parameters", a.status)
}

// tokens sends a code that the server must refuse.
func (e *examination) tokens(ctx context.Context) finding {
	e.token = e.wire.post(ctx, e.server.text("token_endpoint"), url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {"pasteport-doctor-has-no-code"},
		"client_id":     {"https://client.invalid/pasteport-doctor.json"},
		"code_verifier": {"pasteport-doctor-has-no-verifier-for-this-code"},
		"redirect_uri":  {redirect},
	}, "Origin", e.page())
	d := parse(e.token)
	if d.err != nil || d.status < 400 || d.status >= 500 || d.text("error") == "" || mediaTypeOf(d.header) != jsonType {
		return fail("Let the proxy pass POST with its body to the token endpoint, without redirect or login page.",
			"%s to an invalid code, as %q and error %q", d, d.header.Get("Content-Type"), d.text("error"))
	}
	return ok("%d %s to an invalid code", d.status, d.text("error"))
}

func (e *examination) caches(context.Context) finding {
	if result := checkNoStore(e.token); result.Status != statusOK {
		return result
	}
	for _, d := range []document{e.resource, e.server} {
		directives, err := cacheobject.ParseResponseCacheControl(d.header.Get("Cache-Control"))
		if err != nil || directives.NoStore || directives.MaxAge <= 0 ||
			time.Duration(directives.MaxAge)*time.Second > maxMetadataAge {
			return warn("Send Cache-Control: public, max-age=300 with both documents.", "%s: Cache-Control: %s", d.url,
				d.header.Get("Cache-Control"))
		}
	}
	return ok("%s", e.server.header.Get("Cache-Control"))
}

// checkNoStore fails if a cache may keep a response of the token endpoint.
func checkNoStore(a answer) finding {
	directives, err := cacheobject.ParseResponseCacheControl(a.header.Get("Cache-Control"))
	if err != nil || !directives.NoStore {
		return fail("Let the proxy keep Cache-Control: no-store of every response of the token endpoint.",
			"%s has Cache-Control %q", a, a.header.Get("Cache-Control"))
	}
	return ok("no-store")
}

// unknownOrigin is an origin that no server allows by name.
const unknownOrigin = "https://pasteport-doctor.invalid"

var browserChecks = []check{
	{
		id:       "cors.login",
		question: "Can web pages read the documents and exchange codes?",
		needs:    []string{"token.answer"},
		why:      "Clients that are web pages, like the MCP Inspector, can read only what CORS allows.",
		run:      (*examination).opensLogin,
	},
	{
		id:       "cors.endpoint",
		question: "Can allowed web pages read the challenge and the session ID?",
		needs:    []string{"challenge.header"},
		why: "Pages see WWW-Authenticate and Mcp-Session-Id only if both are exposed. A server may refuse other " +
			"origins; if it allows one, its response must name it.",
		run: (*examination).opensEndpoint,
	},
}

// page returns the origin of a web page.
func (e *examination) page() string {
	if e.origin != "" {
		return e.origin
	}
	return unknownOrigin
}

// allowsPage reports whether the page may read the response.
func (e *examination) allowsPage(a answer) bool {
	allowed := a.header.Get("Access-Control-Allow-Origin")
	return allowed == "*" || allowed == e.page()
}

// preflight reports whether the page may send the request.
func (e *examination) preflight(ctx context.Context, method, target string, headers ...string) (answer, bool) {
	a := e.wire.send(ctx, http.MethodOptions, target, "", "Origin", e.page(), "Access-Control-Request-Method", method,
		"Access-Control-Request-Headers", strings.Join(headers, ","))
	return a, a.status >= 200 && a.status < 300 && e.allowsPage(a) &&
		lists(a, "Access-Control-Allow-Headers", headers...)
}

// lists reports whether the response header lists the names. The wildcard * does not cover
// Authorization.
func lists(a answer, header string, names ...string) bool {
	listed := strings.Split(strings.Join(a.header.Values(header), ","), ",")
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(listed, func(value string) bool {
			value = strings.TrimSpace(value)
			return strings.EqualFold(value, name) || value == "*" && !strings.EqualFold(name, "Authorization")
		})
	})
}

func (e *examination) opensLogin(ctx context.Context) finding {
	const mend = "Let the proxy keep Access-Control-Allow-Origin: * of the documents and of every response of the " +
		"token endpoint, errors too, and pass OPTIONS to the server."
	for _, a := range []answer{e.wire.get(ctx, e.resource.url, "Origin", e.page()),
		e.wire.get(ctx, e.server.url, "Origin", e.page()), e.token} {
		if !e.allowsPage(a) {
			return fail(mend, "%s to the page %s has Access-Control-Allow-Origin %q", a, e.page(),
				a.header.Get("Access-Control-Allow-Origin"))
		}
	}
	for _, asked := range []struct{ method, target, header string }{
		{http.MethodGet, e.resource.url, "mcp-protocol-version"},
		{http.MethodGet, e.server.url, "mcp-protocol-version"},
		{http.MethodPost, e.server.text("token_endpoint"), "authorization"},
	} {
		if a, allowed := e.preflight(ctx, asked.method, asked.target, asked.header, "content-type"); !allowed {
			return fail(mend, "%s to a preflight for %s and content-type, and does not allow both", a, asked.header)
		}
	}
	return ok("all web pages can")
}

func (e *examination) opensEndpoint(ctx context.Context) finding {
	const expose = "Access-Control-Expose-Headers: WWW-Authenticate, Mcp-Session-Id."
	mend := "Allow the origin of the page (" + e.page() +
		") at the MCP endpoint (Pasteport: the setting allowed-origins, in your own " +
		"program WithAllowedOrigins), let the proxy pass OPTIONS, and keep " + expose
	a := e.call(ctx, e.endpoint.String(), "Origin", e.page())
	switch {
	case a.status == http.StatusForbidden && e.origin == "":
		return ok("pages of other origins get 403; use --origin to check an allowed origin")
	case !e.allowsPage(a):
		return fail(mend, "%s to the page %s has Access-Control-Allow-Origin %q", a, e.page(),
			a.header.Get("Access-Control-Allow-Origin"))
	case !lists(a, "Access-Control-Expose-Headers", "WWW-Authenticate", "Mcp-Session-Id"):
		return fail(mend, "pages cannot read WWW-Authenticate and Mcp-Session-Id")
	}
	if a, allowed := e.preflight(ctx, http.MethodPost, e.endpoint.String(), "authorization", "content-type",
		"mcp-protocol-version"); !allowed {
		return fail(mend,
			"%s to a preflight for Authorization, Content-Type and MCP-Protocol-Version, and does not allow them", a)
	}
	return ok("the page %s can", e.page())
}

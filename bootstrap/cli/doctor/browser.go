package doctor

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// unknownOrigin is an origin that no server allows by name.
const unknownOrigin = "https://pasteport-doctor.invalid"

var browserChecks = []check{
	{
		id: "cors.metadata", question: "Can web pages read the documents?", needs: []string{"server.document"},
		why:    "Clients that are web pages can read only what CORS allows.",
		breaks: []string{browsers}, run: (*examination).metadataOpen,
	},
	{
		id: "cors.token", question: "Can web pages exchange codes?", needs: []string{"token.answer"},
		why:    "Clients that are web pages send their code from the page.",
		breaks: []string{browsers}, run: (*examination).tokenOpen,
	},
	{
		id: "cors.endpoint", question: "Can allowed web pages read the challenge and the session ID?",
		needs: []string{"challenge.status"},
		why: "Pages see WWW-Authenticate and Mcp-Session-Id only if both are exposed. A server may refuse other " +
			"origins; " +
			"if it allows one, its response must name it.",
		breaks: []string{browsers}, run: (*examination).endpointOpen,
	},
}

func (e *examination) origin() string {
	if e.Origin != "" {
		return e.Origin
	}
	return unknownOrigin
}

// allowsOrigin reports whether a page of the checked origin may read the response.
func (e *examination) allowsOrigin(a answer) bool {
	allowed := a.header.Get("Access-Control-Allow-Origin")
	return allowed == "*" || allowed == e.origin()
}

// preflight reports whether a page may send the request.
func (e *examination) preflight(ctx context.Context, method, target string, headers ...string) (answer, bool) {
	a := e.wire.send(ctx, request{method: http.MethodOptions, url: target, header: []string{
		"Origin", e.origin(), "Access-Control-Request-Method", method, "Access-Control-Request-Headers",
		strings.Join(headers, ","),
	}})
	if a.status < 200 || a.status >= 300 || !e.allowsOrigin(a) {
		return a, false
	}
	return a, !slices.ContainsFunc(headers, func(name string) bool {
		return !lists(a, "Access-Control-Allow-Headers", name)
	})
}

// lists reports whether the response header lists the name. The wildcard * does not cover
// Authorization.
func lists(a answer, header, name string) bool {
	for listed := range strings.SplitSeq(strings.Join(a.header.Values(header), ","), ",") {
		if listed = strings.TrimSpace(listed); strings.EqualFold(listed, name) ||
			listed == "*" && !strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}

func (e *examination) metadataOpen(ctx context.Context) checkResult {
	const mend = "Send Access-Control-Allow-Origin: * with the documents under /.well-known/oauth-*, " +
		"and answer OPTIONS with Access-Control-Allow-Headers: MCP-Protocol-Version, Content-Type."
	for _, d := range []document{e.resource, e.server} {
		a := e.wire.get(ctx, d.url, "Origin", e.origin())
		if !e.allowsOrigin(a) {
			return fail(mend, "%s to the page %s has Access-Control-Allow-Origin %q", a, e.origin(),
				a.header.Get("Access-Control-Allow-Origin"))
		}
		if a, allowed := e.preflight(ctx, http.MethodGet, d.url, "mcp-protocol-version"); !allowed {
			return fail(mend, "%s to a preflight for MCP-Protocol-Version, and does not allow it", a)
		}
		if a, allowed := e.preflight(ctx, http.MethodGet, d.url, "mcp-protocol-version", "content-type"); !allowed {
			return warn(mend, "%s to a preflight for Content-Type, which the MCP Inspector sends in direct mode, and "+
				"does not allow it", a)
		}
	}
	return ok("all web pages can")
}

func (e *examination) tokenOpen(ctx context.Context) checkResult {
	const mend = "Send Access-Control-Allow-Origin: * with every response of the token endpoint, errors too, and " +
		"answer OPTIONS there " +
		"with Access-Control-Allow-Headers: Authorization, Content-Type."
	if !e.allowsOrigin(e.flow.token) {
		return fail(mend, "%s to the page %s has Access-Control-Allow-Origin %q", e.flow.token, e.origin(),
			e.flow.token.header.Get("Access-Control-Allow-Origin"))
	}
	if a, allowed := e.preflight(ctx, http.MethodPost, e.server.text("token_endpoint"), "authorization",
		"content-type"); !allowed {
		return fail(mend, "%s to a preflight for Authorization and Content-Type, and does not allow both", a)
	}
	return ok("all web pages can")
}

func (e *examination) endpointOpen(ctx context.Context) checkResult {
	const expose = "Access-Control-Expose-Headers: WWW-Authenticate, Mcp-Session-Id."
	mend := "Allow the origin of the page (" + e.origin() +
		") at the MCP endpoint (Pasteport: the setting allowed-origins, in your own " +
		"program WithAllowedOrigins), answer OPTIONS without a token, and send " + expose
	a := e.call(ctx, "Origin", e.origin())
	switch {
	case a.err != nil:
		return fail("Let the MCP endpoint answer requests with an Origin header.", "%s", a)
	case a.status == http.StatusForbidden && e.Origin == "":
		return ok("pages of other origins get 403; use --origin to check an allowed origin")
	case !e.allowsOrigin(a) && e.Origin == "":
		return warn("If clients that are web pages must connect, allow their origins, refuse others with 403, "+
			"and send "+expose,
			"%s to the page %s, without CORS headers", a, e.origin())
	case !e.allowsOrigin(a):
		return fail(mend, "%s to the page %s has Access-Control-Allow-Origin %q", a, e.origin(),
			a.header.Get("Access-Control-Allow-Origin"))
	}
	for _, name := range []string{"WWW-Authenticate", "Mcp-Session-Id"} {
		if !lists(a, "Access-Control-Expose-Headers", name) {
			return fail(mend, "pages cannot read %s", name)
		}
	}
	if a, allowed := e.preflight(ctx, http.MethodPost, e.Endpoint.String(), "authorization", "content-type",
		"mcp-protocol-version"); !allowed {
		return fail(mend,
			"%s to a preflight for Authorization, Content-Type and MCP-Protocol-Version, and does not allow them", a)
	}
	return ok("the page %s can", e.origin())
}

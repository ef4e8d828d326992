package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// unknownOrigin is an origin that no server allows by name.
const unknownOrigin = "https://pasteport-doctor.invalid"

func cors(ctx context.Context, p *probe) (seen, fix string) {
	page := cmp.Or(p.origin, unknownOrigin)
	issuer, _ := url.Parse(p.server.Issuer)
	for _, request := range []pageRequest{
		{http.MethodGet, p.challenge, []string{"MCP-Protocol-Version", "Content-Type"}},
		{http.MethodGet, serverMetadataURL(issuer), []string{"MCP-Protocol-Version", "Content-Type"}},
		{http.MethodPost, p.server.TokenEndpoint, []string{"Authorization", "Content-Type"}},
	} {
		if _, seen := p.from(ctx, page, request); seen != "" {
			return seen, "Let the proxy keep Access-Control-Allow-Origin: * of the documents and of every response " +
				"of the token endpoint, errors too, and pass OPTIONS to the server."
		}
	}
	fix = "Allow the origin of the page (" + page + ") at the MCP endpoint (Pasteport: the setting allowed-origins, " +
		"in your own program WithAllowedOrigins), let the proxy pass OPTIONS, and keep " +
		"Access-Control-Expose-Headers: WWW-Authenticate, Mcp-Session-Id."
	a, seen := p.from(ctx, page, pageRequest{http.MethodPost, p.endpoint.String(),
		[]string{"Authorization", "Content-Type", "MCP-Protocol-Version"}})
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

// pageRequest is a request that a web page sends.
type pageRequest struct {
	method, target string
	headers        []string
}

// from sends a request of a web page, and then asks for permission as a browser does. It returns
// the answer to the first, and what keeps the page from sending the request or reading the answer.
func (p *probe) from(ctx context.Context, page string, r pageRequest) (a answer, hindrance string) {
	a, err := p.send(ctx, r.method, r.target, "", "Origin", page)
	if err != nil {
		return a, err.Error()
	}
	if !allows(a, page) {
		return a, fmt.Sprintf("%s to the page %s has Access-Control-Allow-Origin %q", a, page,
			a.Header.Get("Access-Control-Allow-Origin"))
	}
	preflight, err := p.send(ctx, http.MethodOptions, r.target, "", "Origin", page,
		"Access-Control-Request-Method", r.method, "Access-Control-Request-Headers", strings.Join(r.headers, ","))
	if err != nil {
		return a, err.Error()
	}
	if preflight.StatusCode >= 300 || !allows(preflight, page) ||
		!lists(preflight, "Access-Control-Allow-Headers", r.headers...) {
		return a, fmt.Sprintf("%s to a preflight, and does not allow %s", preflight, strings.Join(r.headers, ", "))
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

package doctor

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

var challengeChecks = []check{
	{
		id: "challenge.status", question: "Does a request without a token get 401?", needs: []string{"reach.answer"},
		why:    "Clients start the login only after 401.",
		breaks: everyClient, run: (*examination).status,
	},
	{
		id: "challenge.stream", question: "Does a GET without a token get an error status?",
		needs: []string{"reach.answer"},
		why: "Older clients start with GET. A page, a redirect or a cache of the site may respond to GET although " +
			"POST works.",
		breaks: []string{oldTransport}, run: (*examination).streamStatus,
	},
	{
		id: "challenge.header", question: "Is there exactly one valid challenge?", needs: []string{"challenge.status"},
		why: "The challenge says where the login starts (RFC 9110 §11.6.1). Many clients read only one header, " +
			"or join two into one text.",
		breaks: []string{tsSDK, "any client that reads the first header only"}, run: (*examination).header,
	},
	{
		id: "challenge.metadata", question: "Does the challenge name the resource metadata?",
		needs:  []string{"challenge.header"},
		why:    "resource_metadata is how clients find the authorization server without guessing (RFC 9728 §5.1).",
		breaks: []string{"clients that do not guess the URL of the document"}, run: (*examination).metadataNamed,
	},
	{
		id: "challenge.wrong_token", question: "Does a wrong token get 401 with invalid_token?",
		needs: []string{"challenge.status"},
		why: "401 with invalid_token (RFC 6750 §3.1) makes clients refresh or log in again; 403 and 5xx show people " +
			"an error, " +
			"and 200 means that tokens are not checked.",
		breaks: everyClient, run: (*examination).wrongToken,
	},
	{
		id: "challenge.slash", question: "Does the URL work with and without a trailing slash?",
		needs: []string{"challenge.status"},
		why: "People type both. Clients do not follow a redirect with a token or a body, and a page instead of the " +
			"challenge " +
			"stops the login.",
		breaks: []string{"clients that use the other spelling"}, run: (*examination).slash,
	},
}

func (e *examination) status(context.Context) checkResult {
	const protect = "Put the bearer check in front of the MCP endpoint, so that a request without a token gets 401 " +
		"and a WWW-Authenticate header."
	switch a := e.first; {
	case a.status == http.StatusUnauthorized:
		return ok("401")
	case a.redirects():
		return fail("Return 401 instead of a redirect to a login page. If the address has moved, give people the "+
			"new one.", "%s", a)
	case a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed:
		return fail("Use the URL of the MCP endpoint itself, which often ends with /mcp; or let the proxy pass "+
			"POST to it.", "%s", a)
	case a.status < http.StatusMultipleChoices:
		return fail(protect, "%s, although there was no token", a)
	case a.status >= http.StatusInternalServerError:
		return fail("See the logs of the server and of the proxy; the proxy may not reach the server.", "%s", a)
	default:
		return fail(protect+" Also look for a firewall that responds instead.", "%s", a)
	}
}

func (e *examination) streamStatus(ctx context.Context) checkResult {
	const mend = "Let the proxy pass GET of the MCP endpoint to the server, past pages and caches; the server must " +
		"return 401, or 405 if it has no streams."
	a := e.wire.send(ctx,
		request{method: http.MethodGet, url: e.Endpoint.String(), header: []string{"Accept", eventStream}})
	switch {
	case a.err != nil:
		return fail(mend, "%s", a)
	case a.status < 400 || a.status >= 500:
		return fail(mend, "%s as %q", a, a.header.Get("Content-Type"))
	}
	return ok("%d", a.status)
}

func (e *examination) header(context.Context) checkResult {
	headers := e.first.header.Values("WWW-Authenticate")
	switch len(headers) {
	case 0:
		return fail(`Return WWW-Authenticate: Bearer resource_metadata="…"; if the server does, the proxy must not `+
			`remove it.`,
			"401 without WWW-Authenticate")
	case 1:
		return e.readChallenge(headers)
	}
	return fail("Send the header once. The proxy may add a second one, or two layers of the site may both "+
		"check tokens.",
		"%d WWW-Authenticate headers: %s", len(headers), strings.Join(headers, " | "))
}

func (e *examination) readChallenge(headers []string) checkResult {
	challenges, err := oauthex.ParseWWWAuthenticate(headers)
	if err != nil || len(challenges) == 0 {
		return fail("Use the syntax of RFC 9110 §11.6.1: Bearer, then name=\"value\", separated by commas.",
			"%q is malformed", headers[0])
	}
	e.challenge = challenges[0].Params["resource_metadata"]
	switch {
	case !strings.EqualFold(challenges[0].Scheme, "bearer"):
		return fail("Put the Bearer challenge first.", "%s", headers[0])
	case len(challenges) > 1:
		return warn("Send Bearer alone at the MCP endpoint.", "%d challenges in one header: %s",
			len(challenges), headers[0])
	}
	return ok("%s", headers[0])
}

func (e *examination) metadataNamed(context.Context) checkResult {
	const mend = "Add resource_metadata with the absolute URL of the document, whose path ends with the path of the " +
		"MCP endpoint."
	target, err := url.Parse(e.challenge)
	switch {
	case e.challenge == "":
		return warn(mend, "the challenge has no resource_metadata, so clients must guess the URL")
	case err != nil || target.Host == "":
		return fail(mend, "resource_metadata is %q, which is not an absolute URL", e.challenge)
	}
	return ok("%s", e.challenge)
}

func (e *examination) wrongToken(ctx context.Context) checkResult {
	const mend = `Return 401 with error="invalid_token" for every unknown, expired or revoked token, and 503 during ` +
		`an outage.`
	a := e.call(ctx, "Authorization", "Bearer pasteport-doctor-has-no-token")
	challenges, malformed := oauthex.ParseWWWAuthenticate(a.header.Values("WWW-Authenticate"))
	switch {
	case a.err != nil:
		return fail(mend, "%s", a)
	case a.status != http.StatusUnauthorized:
		return fail(mend, "%s to an invalid token", a)
	case malformed != nil || len(challenges) == 0 || challenges[0].Params["error"] != "invalid_token":
		return warn(mend, "401 without error=\"invalid_token\"")
	}
	return ok("401, invalid_token")
}

// slash sends the request to the URL with or without the trailing slash; the root of a site has
// only one spelling.
func (e *examination) slash(ctx context.Context) checkResult {
	other := *e.Endpoint
	if strings.Trim(other.Path, "/") == "" {
		return ok("the URL has no path")
	}
	other.Path, other.RawPath = toggleSlash(other.Path), toggleSlash(other.RawPath)
	mend := "Serve the MCP endpoint at " + other.String() +
		" too, without a redirect; or give clients the other URL only."
	if a := e.callAt(ctx, other.String()); a.status != http.StatusUnauthorized {
		return warn(mend, "%s", a)
	}
	return ok("401 for %s too", other.String())
}

// toggleSlash adds a slash to the end of a path or removes it. The empty path stays empty, as
// RawPath usually is.
func toggleSlash(path string) string {
	switch {
	case path == "":
		return ""
	case strings.HasSuffix(path, "/"):
		return strings.TrimRight(path, "/")
	}
	return path + "/"
}

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
		why:    "Clients begin the login only after 401.",
		breaks: everybody, run: (*examination).status,
	},
	{
		id: "challenge.stream", question: "Does a GET without a token get an error status?", needs: []string{"reach.answer"},
		why:    "Older clients begin with GET. Often a page, a redirect or a cache of the site answers GET, although POST works.",
		breaks: []string{oldTransport}, run: (*examination).streamStatus,
	},
	{
		id: "challenge.header", question: "Is there one challenge that can be read?", needs: []string{"challenge.status"},
		why: "The challenge names where the login begins (RFC 9110 §11.6.1). Many clients read only one header, " +
			"or join two into one text.",
		breaks: []string{tsSDK, "any client that reads the first header only"}, run: (*examination).header,
	},
	{
		id: "challenge.metadata", question: "Does it name the resource metadata?", needs: []string{"challenge.header"},
		why:    "resource_metadata is how clients find the authorization server without guessing (RFC 9728 §5.1).",
		breaks: []string{"clients that do not guess where the document is"}, run: (*examination).metadataNamed,
	},
	{
		id: "challenge.wrong_token", question: "Does a wrong token get 401 with invalid_token?", needs: []string{"challenge.status"},
		why: "401 with invalid_token (RFC 6750 §3.1) makes clients refresh or log in again; 403 and 5xx show people an error, " +
			"and 200 means that tokens are not checked.",
		breaks: everybody, run: (*examination).wrongToken,
	},
	{
		id: "challenge.slash", question: "Does the URL work with and without a slash at its end?", needs: []string{"challenge.status"},
		why: "People type both. Clients do not follow a redirect with a token or a body, and a page instead of the challenge " +
			"stops the login.",
		breaks: []string{"clients that use the other spelling"}, run: (*examination).slash,
	},
}

func (e *examination) status(context.Context) verdict {
	const protect = "Put the bearer check in front of the MCP endpoint, so that a request without a token gets 401 and a WWW-Authenticate header."
	switch a := e.first; {
	case a.status == http.StatusUnauthorized:
		return ok("401")
	case a.redirects():
		return fail("Answer 401 instead of sending clients to a login page. If the address moved, give people the new one.", "%s", a)
	case a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed:
		return fail("Give the URL of the MCP endpoint itself, often with /mcp at its end; or let the proxy pass POST to it.", "%s", a)
	case a.status < http.StatusMultipleChoices:
		return fail(protect, "%s, although there was no token", a)
	case a.status >= http.StatusInternalServerError:
		return fail("See the logs of the server and of the proxy; the proxy may not reach the server.", "%s", a)
	default:
		return fail(protect+" Look also for a firewall that answers instead.", "%s", a)
	}
}

func (e *examination) streamStatus(ctx context.Context) verdict {
	const mend = "Let the proxy pass GET of the MCP endpoint to the server, past pages and caches; the server answers 401, or 405 if it has no streams."
	a, err := e.wire.send(ctx, request{method: http.MethodGet, url: e.Endpoint.String(), header: []string{"Accept", eventStream}})
	switch {
	case err != nil:
		return fail(mend, "%v", err)
	case a.status < 400 || a.status >= 500:
		return fail(mend, "%s as %q", a, a.header.Get("Content-Type"))
	}
	return ok("%d", a.status)
}

func (e *examination) header(context.Context) verdict {
	headers := e.first.header.Values("WWW-Authenticate")
	switch len(headers) {
	case 0:
		return fail(`Answer with WWW-Authenticate: Bearer resource_metadata="…"; if the server does, the proxy must not remove it.`,
			"401 without WWW-Authenticate")
	case 1:
		return e.readChallenge(headers)
	}
	return fail("Send the header once. Often the proxy adds a second one, or two layers of the site both check tokens.",
		"%d WWW-Authenticate headers: %s", len(headers), strings.Join(headers, " | "))
}

func (e *examination) readChallenge(headers []string) verdict {
	challenges, err := oauthex.ParseWWWAuthenticate(headers)
	if err != nil || len(challenges) == 0 {
		return fail("Use the syntax of RFC 9110 §11.6.1: Bearer, then name=\"value\", separated by commas.", "%q cannot be read", headers[0])
	}
	e.challenge = challenges[0].Params["resource_metadata"]
	switch {
	case !strings.EqualFold(challenges[0].Scheme, "bearer"):
		return fail("Let Bearer be the first challenge.", "%s", headers[0])
	case len(challenges) > 1:
		return warn("Offer Bearer alone at the MCP endpoint.", "%d challenges in one header: %s", len(challenges), headers[0])
	}
	return ok("%s", headers[0])
}

func (e *examination) metadataNamed(context.Context) verdict {
	const mend = "Add resource_metadata with the absolute URL of the document, whose path ends with the path of the MCP endpoint."
	target, err := url.Parse(e.challenge)
	switch {
	case e.challenge == "":
		return warn(mend, "there is no resource_metadata in it, so clients have to guess")
	case err != nil || target.Host == "":
		return fail(mend, "resource_metadata is %q, which is no absolute URL", e.challenge)
	}
	return ok("%s", e.challenge)
}

func (e *examination) wrongToken(ctx context.Context) verdict {
	const mend = `Answer every token that is unknown, expired or revoked with 401 and error="invalid_token"; an outage with 503.`
	a, err := e.call(ctx, "Authorization", "Bearer pasteport-doctor-has-no-token")
	challenges, malformed := oauthex.ParseWWWAuthenticate(a.header.Values("WWW-Authenticate"))
	switch {
	case err != nil:
		return fail(mend, "%v", err)
	case a.status != http.StatusUnauthorized:
		return fail(mend, "%s to a token that cannot be valid", a)
	case malformed != nil || len(challenges) == 0 || challenges[0].Params["error"] != "invalid_token":
		return warn(mend, "401 without error=\"invalid_token\"")
	}
	return ok("401, invalid_token")
}

// slash sends the request to the other spelling of the URL; the root of a site has only one.
func (e *examination) slash(ctx context.Context) verdict {
	other := *e.Endpoint
	if strings.Trim(other.Path, "/") == "" {
		return ok("the URL has no path")
	}
	other.Path, other.RawPath = toggleSlash(other.Path), toggleSlash(other.RawPath)
	mend := "Answer " + other.String() + " as the MCP endpoint too, without a redirect; or give clients the other URL only."
	a, err := e.callAt(ctx, other.String())
	switch {
	case err != nil:
		return warn(mend, "%v", err)
	case a.status != http.StatusUnauthorized:
		return warn(mend, "%s", a)
	}
	return ok("401 for %s too", other.String())
}

// toggleSlash adds a slash to the end of a path or removes it. The empty path stays empty, as RawPath usually is.
func toggleSlash(path string) string {
	switch {
	case path == "":
		return ""
	case strings.HasSuffix(path, "/"):
		return strings.TrimRight(path, "/")
	}
	return path + "/"
}

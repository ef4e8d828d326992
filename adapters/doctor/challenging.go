package doctor

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

var challenging = []check{
	{
		id: "challenge.status", asks: "Is a client without a token told to get one?", needs: []string{"reach.answer"},
		why:    "401 is the only answer at which a client begins to log in.",
		breaks: everybody, look: (*examination).status,
	},
	{
		id: "challenge.stream", asks: "And a client that begins with a stream?", needs: []string{"reach.answer"},
		why:    "Older clients begin with GET. Often a page, a redirect or a cache of the site answers it, although POST is in order.",
		breaks: []string{older}, look: (*examination).streamStatus,
	},
	{
		id: "challenge.header", asks: "Is there one challenge that can be read?", needs: []string{"challenge.status"},
		why: "The challenge says where the login begins (RFC 9110 §11.6.1). Many clients search it as one text, where a second header " +
			"hides the first or mixes with it.",
		breaks: []string{tsSDK, "any client that reads the first header only"}, look: (*examination).header,
	},
	{
		id: "challenge.metadata", asks: "Does it name the resource metadata?", needs: []string{"challenge.header"},
		why:    "resource_metadata is how clients find the authorization server without guessing (RFC 9728 §5.1).",
		breaks: []string{"clients that do not guess where the document is"}, look: (*examination).metadataNamed,
	},
	{
		id: "challenge.wrong_token", asks: "Is a wrong token refused in the way that makes clients log in again?", needs: []string{"challenge.status"},
		why: "401 with invalid_token (RFC 6750 §3.1) makes clients refresh or log in again; 403 and 5xx leave people with an error, " +
			"and 200 means that nobody checks tokens.",
		breaks: everybody, look: (*examination).wrongToken,
	},
	{
		id: "challenge.slash", asks: "Is the URL answered in the same way with and without a slash at its end?", needs: []string{"challenge.status"},
		why: "People type both. Clients follow no redirect with a token or a body, and a page in place of the challenge ends the login before " +
			"it begins.",
		breaks: []string{"clients that were given the other spelling"}, look: (*examination).slash,
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
		return fail("See the logs of the server and of the proxy; the proxy may not find the server.", "%s", a)
	default:
		return fail(protect+" Look also for a firewall that answers in its place.", "%s", a)
	}
}

func (e *examination) streamStatus(ctx context.Context) verdict {
	const mend = "Let the proxy pass GET of the MCP endpoint to the server, past pages and caches; the server answers 401, or 405 if it has no streams."
	a, err := e.wire.ask(ctx, question{method: http.MethodGet, url: e.Endpoint.String(), header: []string{"Accept", eventStream}})
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
		return fail("Write it as RFC 9110 §11.6.1 has it: Bearer, then name=\"value\", separated by commas.", "%q cannot be read", headers[0])
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
	const mend = "Add resource_metadata with the absolute URL of the document, whose path ends with the one of the MCP endpoint."
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

// slash asks the other spelling of the URL; a site's root has only one.
func (e *examination) slash(ctx context.Context) verdict {
	other := *e.Endpoint
	if strings.Trim(other.Path, "/") == "" {
		return ok("the URL is that of a whole site")
	}
	other.Path, other.RawPath = respelled(other.Path), respelled(other.RawPath)
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

// respelled adds a slash at the end of a path, or takes it away; no path stays none.
func respelled(path string) string {
	switch {
	case path == "":
		return ""
	case strings.HasSuffix(path, "/"):
		return strings.TrimRight(path, "/")
	}
	return path + "/"
}

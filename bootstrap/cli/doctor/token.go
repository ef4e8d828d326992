package doctor

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/pquerna/cachecontrol/cacheobject"
)

const maxMetadataAge = 24 * time.Hour // in the caches of clients and proxies

var tokenChecks = []check{
	{
		id: "authorize.page", question: "Does the authorization endpoint respond?", needs: []string{"server.endpoints"},
		why: "The client sends the person's browser there.", breaks: everyClient, run: (*examination).authorizes,
	},
	{
		id: "token.answer", question: "Does the token endpoint respond?", needs: []string{"server.endpoints"},
		why: "Clients POST the code there, follow no redirect, and expect OAuth errors as JSON (RFC 6749 §5.2). " +
			"After any other response " +
			"they discard their tokens or open the browser again.",
		breaks: everyClient, run: (*examination).tokens,
	},
	{
		id: "token.cache", question: "Are its responses kept out of caches?", needs: []string{"token.answer"},
		why: "A response with a token must have Cache-Control: no-store (RFC 6749 §5.1), or a proxy may serve it " +
			"to another client.",
		breaks: []string{"no client visibly, but tokens can leak"},
		run: func(e *examination, _ context.Context) checkResult {
			return noStore(e.flow.token)
		},
	},
	{
		id: "metadata.cache", question: "Can the documents be cached, for at most a day?",
		needs:  []string{"server.document"},
		why:    "Every connection starts with them, and a change must reach clients within a day.",
		breaks: []string{"clients that keep an old document after a change"}, run: (*examination).metadataCache,
	},
}

func (e *examination) authorizes(ctx context.Context) checkResult {
	const mend = "Let the proxy pass GET and POST of the authorization endpoint to the server, and read the " +
		"server's log."
	a := e.wire.get(ctx, e.server.text("authorization_endpoint"), "Accept", "text/html")
	switch {
	case a.status == http.StatusInternalServerError: // it may have failed only because parameters are missing
		return warn("Return 400 for a request without parameters.", "%s to a request without parameters", a)
	case a.err != nil || a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed ||
		a.status > http.StatusInternalServerError:
		return fail(mend, "%s", a)
	}
	return ok("%d to a request without parameters", a.status)
}

// tokens sends a code that the server must refuse.
func (e *examination) tokens(ctx context.Context) checkResult {
	const mend = "Let the proxy pass POST with its body to the token endpoint, without redirect or login page, and " +
		"return errors as JSON."
	a := e.wire.post(ctx, e.server.text("token_endpoint"), url.Values{
		"grant_type": {"authorization_code"}, "code": {"pasteport-doctor-has-no-code"},
		"client_id":     {"https://client.invalid/pasteport-doctor.json"},
		"code_verifier": {"pasteport-doctor-has-no-verifier-for-this-code"}, "redirect_uri": {redirect},
	}, "Origin", e.origin())
	e.flow.token = a
	d := parse(a)
	switch {
	case a.err != nil:
		return fail(mend, "%s", a)
	case a.status == http.StatusNotFound:
		return fail("Set token_endpoint to the URL of the endpoint, and let the proxy pass requests to it.", "%s", a)
	case a.status == http.StatusMethodNotAllowed:
		return fail("The proxy and the server must accept POST there.", "%s", a)
	case a.redirects():
		return fail("Publish the target of the redirect as token_endpoint.", "%s", a)
	case a.status == http.StatusOK && d.text("access_token") != "":
		return fail("Verify codes before you issue tokens: this code was made up.",
			"%s with a token to a made-up code", a)
	case a.status < 400 || a.status >= 500:
		return fail(mend, "%s to an invalid code", a)
	case d.malformed != nil || d.text("error") == "" || a.mediaType() != jsonType:
		return fail(mend, "%s with %q and no OAuth error", a, a.header.Get("Content-Type"))
	}
	return ok("%d %s to an invalid code", a.status, d.text("error"))
}

func noStore(a answer) checkResult {
	directives, err := cacheobject.ParseResponseCacheControl(a.header.Get("Cache-Control"))
	if err != nil || !directives.NoStore {
		return fail("Send Cache-Control: no-store with every response of the token endpoint, and let the proxy keep "+
			"the header.",
			"Cache-Control: %s", a.header.Get("Cache-Control"))
	}
	return ok("no-store")
}

func (e *examination) metadataCache(context.Context) checkResult {
	const mend = "Send Cache-Control: public, max-age=300 with both documents."
	for _, d := range []document{e.resource, e.server} {
		directives, err := cacheobject.ParseResponseCacheControl(d.header.Get("Cache-Control"))
		age := time.Duration(0)
		if err == nil {
			age = time.Duration(directives.MaxAge) * time.Second
		}
		if err != nil || directives.NoStore || age <= 0 || age > maxMetadataAge || directives.Immutable {
			return warn(mend, "%s: Cache-Control: %s", d.url, d.header.Get("Cache-Control"))
		}
	}
	return ok("%s", e.server.header.Get("Cache-Control"))
}

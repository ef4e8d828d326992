package doctor

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/pquerna/cachecontrol/cacheobject"
)

// longest is how long metadata may be kept by clients and proxies.
const longest = 24 * time.Hour

var tokenChecks = []check{
	{
		id: "authorize.page", asks: "Does the authorization endpoint answer?", needs: []string{"server.endpoints"},
		why: "This is where the browser of the person is sent.", breaks: everybody, look: (*examination).authorizes,
	},
	{
		id: "token.answer", asks: "Does the token endpoint answer?", needs: []string{"server.endpoints"},
		why: "Clients send the code there by POST, follow no redirect, and read an error of OAuth as JSON (RFC 6749 §5.2). Anything else makes " +
			"them throw away what they have, or open the browser again.",
		breaks: everybody, look: (*examination).tokens,
	},
	{
		id: "token.cache", asks: "Are its answers kept out of caches?", needs: []string{"token.answer"},
		why:    "An answer with a token must carry Cache-Control: no-store (RFC 6749 §5.1), or a proxy may hand it to somebody else.",
		breaks: []string{"nobody visibly; it leaks tokens"}, look: (*examination).tokenCache,
	},
	{
		id: "metadata.cache", asks: "Can the documents be cached, but not for ever?", needs: []string{"server.document"},
		why:    "Every connection begins with them; and a change must reach clients within a day.",
		breaks: []string{"clients that keep an old document after a change"}, look: (*examination).metadataCache,
	},
}

func (e *examination) authorizes(ctx context.Context) verdict {
	const mend = "Let the proxy pass GET and POST of the authorization endpoint to the server, and look into the server's log."
	a, err := e.wire.get(ctx, e.server.text("authorization_endpoint"), "Accept", "text/html")
	switch {
	case err != nil:
		return fail(mend, "%v", err)
	case a.status == http.StatusInternalServerError: // it may have stumbled over the missing parameters only
		return warn("Answer a request without parameters with 400.", "%s to a request without parameters", a)
	case a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed || a.status > http.StatusInternalServerError:
		return fail(mend, "%s", a)
	}
	return ok("%d to a request without parameters", a.status)
}

// tokens sends what can only be refused.
func (e *examination) tokens(ctx context.Context) verdict {
	const mend = "Let the proxy pass POST with its body to the token endpoint, without redirect or login page, and answer errors as JSON."
	a, err := e.wire.post(ctx, e.server.text("token_endpoint"), url.Values{
		"grant_type": {"authorization_code"}, "code": {"pasteport-doctor-has-no-code"}, "client_id": {"https://client.invalid/pasteport-doctor.json"},
		"code_verifier": {"pasteport-doctor-has-no-verifier-for-this-code"}, "redirect_uri": {redirect},
	}, "Origin", e.origin())
	e.flow.token = a
	if err != nil {
		return fail(mend, "%v", err)
	}
	switch a.status {
	case http.StatusNotFound:
		return fail("Let token_endpoint name the address where the server is, and the proxy pass it on.", "%s", a)
	case http.StatusMethodNotAllowed:
		return fail("Let the proxy and the server take POST there.", "%s", a)
	}
	d, err := parse(a)
	switch {
	case a.redirects():
		return fail("Publish the address to which it redirects as token_endpoint.", "%s", a)
	case a.status == http.StatusOK && d.text("access_token") != "":
		return fail("Check codes before you give tokens for them: this one was made up.", "%s with a token to a code that was made up", a)
	case a.status < 400 || a.status >= 500:
		return fail(mend, "%s to a code that cannot be valid", a)
	case err != nil || d.text("error") == "" || a.mediaType() != jsonType:
		return fail(mend, "%s with %q and no error of OAuth", a, a.header.Get("Content-Type"))
	}
	return ok("%d %s to a code that cannot be valid", a.status, d.text("error"))
}

func (e *examination) tokenCache(context.Context) verdict { return noStore(e.flow.token) }

func noStore(a answer) verdict {
	directives, err := cacheobject.ParseResponseCacheControl(a.header.Get("Cache-Control"))
	if err != nil || !directives.NoStore {
		return fail("Send Cache-Control: no-store with every answer of the token endpoint, and let the proxy keep it.",
			"Cache-Control: %s", a.header.Get("Cache-Control"))
	}
	return ok("no-store")
}

func (e *examination) metadataCache(context.Context) verdict {
	const mend = "Send Cache-Control: public, max-age=300 with both documents."
	for _, d := range []document{e.resource, e.server} {
		directives, err := cacheobject.ParseResponseCacheControl(d.header.Get("Cache-Control"))
		age := time.Duration(0)
		if err == nil {
			age = time.Duration(directives.MaxAge) * time.Second
		}
		if err != nil || directives.NoStore || age <= 0 || age > longest || directives.Immutable {
			return warn(mend, "%s: Cache-Control: %s", d.url, d.header.Get("Cache-Control"))
		}
	}
	return ok("%s", e.server.header.Get("Cache-Control"))
}

package doctor

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// flow is one login from its beginning to its end.
type flow struct {
	token answer // of the token endpoint, to a wrong code

	state, verifier string
	address         string // of the page
	page            page
	code            string
	granted         answer
	access, refresh string
}

var flowChecks = []check{
	{
		id: "flow.document", asks: "Is the client's own document in order?", needs: []string{"server.documents"},
		why: "The authorization server reads it to learn who asks.", breaks: []string{"this examination"}, look: withToken((*examination).document),
	},
	{
		id: "flow.client", asks: "Does the authorization server take the client?", needs: []string{"flow.document", "authorize.page"},
		why:    "It has to fetch the client's document over https. Where that fails, people see an error page instead of the question.",
		breaks: []string{claude, claudeCode, chatGPT, vsCode, "every client that is named by a document"},
		look:   (*examination).introduce,
	},
	{
		id: "flow.consent", asks: "Is the person asked?", needs: []string{"flow.client"},
		why: "Nobody may get a token without a person's yes.", breaks: everybody, look: (*examination).consent,
	},
	{
		id: "flow.approve", asks: "Does the browser bring a code back?", needs: []string{"flow.consent"},
		why:    "The code has to arrive once, with the state that was sent (RFC 6749 §4.1.2) and the issuer that was promised (RFC 9207).",
		breaks: everybody, look: (*examination).approve,
	},
	{
		id: "flow.exchange", asks: "Is the code exchanged for tokens?", needs: []string{"flow.approve", "token.answer"},
		why:    "The client proves with its PKCE verifier that it began this login.",
		breaks: everybody, look: (*examination).exchange,
	},
	{
		id: "flow.cache", asks: "Is the answer with the tokens kept out of caches?", needs: []string{"flow.exchange"},
		why:    "It must carry Cache-Control: no-store (RFC 6749 §5.1).",
		breaks: []string{"nobody visibly; it leaks tokens"}, look: func(e *examination, _ context.Context) verdict { return noStore(e.flow.granted) },
	},
	{
		id: "flow.tools", asks: "Does the token open the MCP server?", needs: []string{"flow.exchange"},
		why:    "This is what all of it is for: a session, and the list of tools.",
		breaks: everybody, look: (*examination).tools,
	},
	{
		id: "flow.stream", asks: "Do events arrive at once?", needs: []string{"flow.exchange"},
		why:    "A proxy that collects an answer before it passes it on holds back events until the client gives up.",
		breaks: []string{older, "every client that waits for progress or notifications"},
		look:   (*examination).stream,
	},
	{
		id: "flow.refresh", asks: "Can the tokens be renewed?", needs: []string{"flow.exchange"},
		why:    "Otherwise people log in again whenever the access token ends.",
		breaks: []string{"everybody, after an hour"}, look: (*examination).renew,
	},
	{
		id: "flow.revoke", asks: "Can the tokens be given back?", needs: []string{"flow.exchange"},
		why:    "A client that is removed should leave nothing behind (RFC 7009).",
		breaks: []string{"nobody visibly; the tokens of removed clients live on"}, look: (*examination).revoke,
	},
	{
		id: "flow.revoked", asks: "Is a token that was given back refused?", needs: []string{"flow.revoke"},
		why:    "Whoever stole it could go on.",
		breaks: []string{"nobody visibly; it is no protection"}, look: (*examination).revoked,
	},
}

func withToken(look func(*examination, context.Context) verdict) func(*examination, context.Context) verdict {
	return func(e *examination, ctx context.Context) verdict {
		if e.Token == "" {
			return skip("because there is no --token to go through the whole flow with")
		}
		return look(e, ctx)
	}
}

// introduce sends the browser to the authorization endpoint.
func (e *examination) introduce(ctx context.Context) verdict {
	e.flow.state, e.flow.verifier = rand.Text(), rand.Text()+rand.Text()
	e.hide(e.flow.verifier)
	e.flow.address = e.authorizationURL()
	a, err := e.wire.get(ctx, e.flow.address, "Accept", "text/html")
	if err != nil {
		return fail("See the log of the authorization server.", "%v", err)
	}
	e.flow.page = readPage(a)
	if e.Client.server != nil && e.Client.fetches.Load() == 0 {
		return fail("Start the server with --dev and with SSL_CERT_FILE="+e.Client.certificate+" in its environment, so that it trusts the "+
			"certificate of "+e.Client.ID+".", "%d: the server did not fetch the client's document (page: %q)", a.status, e.flow.page.title)
	}
	back := a.location()
	switch {
	case a.status >= http.StatusBadRequest:
		return fail("Fetch "+e.Client.ID+" from the machine of the authorization server: DNS, its firewall (port 443 out, or metadata-proxy of Pasteport where a proxy is the only way out), the certificate and the authorities "+
			"that it trusts must be in order. Its log says more.", "the page says %d: %q, %s", a.status, e.flow.page.title, e.flow.page.code)
	case a.redirects() && back.Query().Get("error") != "":
		return fail("Let the server accept what its own metadata offers.", "it answers %s: %s", back.Query().Get("error"), back.Query().Get("error_description"))
	}
	return ok("%d %q", a.status, e.flow.page.title)
}

func (e *examination) authorizationURL() string {
	challenge := sha256.Sum256([]byte(e.flow.verifier))
	query := url.Values{
		"response_type": {"code"}, "client_id": {e.Client.ID}, "redirect_uri": {redirect}, "state": {e.flow.state},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}, "code_challenge_method": {"S256"},
		"resource": {e.resource.text("resource")},
	}
	if scope := e.scope(); scope != "" {
		query.Set("scope", scope)
	}
	endpoint, separator := e.server.text("authorization_endpoint"), "?"
	if strings.Contains(endpoint, "?") {
		separator = "&"
	}
	return endpoint + separator + query.Encode()
}

func (e *examination) scope() string {
	scopes := e.resource.list("scopes_supported")
	if slices.Contains(e.server.list("scopes_supported"), offlineAccess) && !slices.Contains(scopes, offlineAccess) {
		scopes = append(scopes, offlineAccess)
	}
	return strings.Join(scopes, " ")
}

// consent knows the forms of Pasteport; on the pages of others, a person has to decide.
func (e *examination) consent(context.Context) verdict {
	p := e.flow.page
	if !p.fields.Has("ticket") || !p.fields.Has("bearer_token") {
		return skip("because this page is not Pasteport's and needs a person; open it to see what people see: %s", e.flow.address)
	}
	if !sameOrigin(p.action, e.server.text("authorization_endpoint")) {
		return fail("Let the form lead to the authorization endpoint; look into the proxy if it rewrites pages.",
			"the form would send the token to %q, so doctor does not", p.action)
	}
	return ok("%q", p.title)
}

func (e *examination) approve(ctx context.Context) verdict {
	form := e.flow.page.fields
	form.Set("bearer_token", e.Token)
	form.Set("decision", "approve")
	a, err := e.wire.post(ctx, e.flow.page.action, form, "Accept", "text/html")
	if err != nil {
		return fail("See the log of the authorization server.", "%v", err)
	}
	back := a.location()
	e.hide(back.Query().Get("code"))
	switch answer := readPage(a); {
	case a.status == http.StatusForbidden:
		return fail("Give doctor a --token that the site knows; or see why the site does not know it.", "the page says %d: %q", a.status, answer.title)
	case a.status == http.StatusServiceUnavailable:
		return fail("Look at who is asked about tokens: the site, or with a gateway the MCP server behind it, which has to run at the very address that "+
			"upstream names, answer there itself without a redirect, and refuse tokens that it does not know. The log has the cause, and `pasteport trace`.",
			"the page says 503: %q", answer.title)
	case a.status != http.StatusSeeOther && a.status != http.StatusFound:
		return fail("See the log of the authorization server, and of the verifier of its tokens.", "the page says %d: %q", a.status, answer.title)
	case back.Query().Get("error") != "":
		return fail("See the log of the authorization server.", "it answers %s: %s", back.Query().Get("error"), back.Query().Get("error_description"))
	case !strings.HasPrefix(a.header.Get("Location"), redirect+"?"):
		return fail("Send the browser to the redirect_uri of the request, byte for byte.", "it sends the browser to %s", originOf(back))
	}
	return e.arrived(back.Query())
}

func (e *examination) arrived(query url.Values) verdict {
	iss := query.Get("iss")
	switch {
	case len(query["code"]) != 1 || query.Get("code") == "":
		return fail("Send the code exactly once.", "%d codes arrive", len(query["code"]))
	case !slices.Equal(query["state"], []string{e.flow.state}):
		return fail("Send state back exactly as it came, once.", "state comes back changed, twice or not at all")
	case iss != e.server.text("issuer") && (iss != "" || e.server.flag("authorization_response_iss_parameter_supported")):
		return fail("Send iss, spelled as issuer in the metadata.", "iss is %q, the issuer %q", iss, e.server.text("issuer"))
	}
	e.flow.code = query.Get("code")
	return ok("a code, the state, and the issuer %q", iss)
}

// redeem sends a form to the token endpoint and keeps the tokens that come back.
func (e *examination) redeem(ctx context.Context, form url.Values) verdict {
	form.Set("client_id", e.Client.ID)
	form.Set("resource", e.resource.text("resource"))
	a, err := e.wire.post(ctx, e.server.text("token_endpoint"), form)
	if err != nil {
		return fail("See the log of the authorization server.", "%v", err)
	}
	d, err := parse(a)
	e.hide(d.text("access_token"), d.text("refresh_token"))
	switch {
	case err != nil:
		return fail("Answer with JSON.", "%v", err)
	case a.status != http.StatusOK:
		return fail("See the log of the authorization server; a code may be used once, within minutes, by whoever asked for it.",
			"%d %s: %s", a.status, d.text("error"), d.text("error_description"))
	case d.text("access_token") == "" || !strings.EqualFold(d.text("token_type"), "Bearer"):
		return fail("Answer with access_token and token_type Bearer (RFC 6749 §5.1).", "the answer has no bearer token")
	}
	e.flow.granted, e.flow.access = a, d.text("access_token")
	if next := d.text("refresh_token"); next != "" {
		e.flow.refresh = next
	}
	return ok("an access token for %v seconds, scope %q", d.members["expires_in"], d.text("scope"))
}

func (e *examination) exchange(ctx context.Context) verdict {
	return e.redeem(ctx, url.Values{
		"grant_type": {"authorization_code"}, "code": {e.flow.code}, "code_verifier": {e.flow.verifier}, "redirect_uri": {redirect},
	})
}

func (e *examination) renew(ctx context.Context) verdict {
	if e.flow.refresh == "" {
		return warn("Give a refresh token to a client that asks for offline_access.", "there is no refresh token")
	}
	return e.redeem(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {e.flow.refresh}})
}

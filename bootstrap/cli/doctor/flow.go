package doctor

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/bootstrap/pasteporttest/browser"
)

// flow is the state of one login.
type flow struct {
	token answer // response of the token endpoint to an invalid code

	state, verifier string
	address         string // of the consent page
	page            *browser.Page
	code            string
	granted         answer
	access, refresh string
}

var flowChecks = []check{
	{
		id: "flow.document", question: "Is doctor's own client document valid?", needs: []string{"server.documents"},
		why: "The authorization server reads it to identify the client.", breaks: []string{"this check of the login"},
		run: (*examination).document,
	},
	{
		id: "flow.client", question: "Does the authorization server accept the client?",
		needs: []string{"flow.document", "authorize.page"},
		why: "It must fetch the client's document over https. If that fails, people see an error page instead of " +
			"the consent page.",
		breaks: []string{claude, claudeCode, chatGPT, vsCode, "every client with a metadata document"},
		run:    (*examination).authorize,
	},
	{
		id: "flow.consent", question: "Is the person's consent required?", needs: []string{"flow.client"},
		why: "A client must not get a token without the person's consent.", breaks: everyClient,
		run: (*examination).consent,
	},
	{
		id: "flow.approve", question: "Does the browser return with a code?", needs: []string{"flow.consent"},
		why: "The redirect must carry the code once, the state of the request (RFC 6749 §4.1.2) and the issuer " +
			"(RFC 9207).",
		breaks: everyClient, run: (*examination).approve,
	},
	{
		id: "flow.exchange", question: "Is the code exchanged for tokens?",
		needs:  []string{"flow.approve", "token.answer"},
		why:    "The PKCE verifier proves that the same client started this login.",
		breaks: everyClient, run: (*examination).exchange,
	},
	{
		id: "flow.cache", question: "Is the token response kept out of caches?", needs: []string{"flow.exchange"},
		why:    "It must carry Cache-Control: no-store (RFC 6749 §5.1).",
		breaks: []string{"no client visibly, but tokens can leak"},
		run: func(e *examination, _ context.Context) checkResult {
			return noStore(e.flow.granted)
		},
	},
	{
		id: "flow.tools", question: "Does the MCP server accept the token?", needs: []string{"flow.exchange"},
		why:    "After a login, clients open a session and list the tools.",
		breaks: everyClient, run: (*examination).tools,
	},
	{
		id: "flow.stream", question: "Do events arrive immediately?", needs: []string{"flow.exchange"},
		why:    "A proxy that buffers responses holds events back until the client times out.",
		breaks: []string{oldTransport, "every client that waits for progress or notifications"},
		run:    (*examination).stream,
	},
	{
		id: "flow.refresh", question: "Can the client refresh its tokens?", needs: []string{"flow.exchange"},
		why:    "Otherwise people must log in again whenever the access token expires.",
		breaks: []string{"every client, when the access token expires"}, run: (*examination).renew,
	},
	{
		id: "flow.revoke", question: "Can the tokens be revoked?", needs: []string{"flow.exchange"},
		why:    "The tokens of a removed client should end with it (RFC 7009).",
		breaks: []string{"no client visibly; the tokens of removed clients stay valid"}, run: (*examination).revoke,
	},
	{
		id: "flow.revoked", question: "Is a revoked token refused?", needs: []string{"flow.revoke"},
		why:    "A stolen token would stay usable.",
		breaks: []string{"no client visibly; revocation has no effect"}, run: (*examination).revoked,
	},
}

// authorize opens the authorization endpoint like a browser.
func (e *examination) authorize(ctx context.Context) checkResult {
	e.flow.state, e.flow.verifier = rand.Text(), rand.Text()+rand.Text()
	e.hide(e.flow.verifier)
	e.flow.address = e.authorizationURL(e.Client.ID, redirect)
	page, err := e.visit(ctx, func(ctx context.Context, person browser.Person) (*browser.Page, error) {
		return person.Open(ctx, e.flow.address)
	})
	if err != nil {
		return fail("See the log of the authorization server.", "%v", err)
	}
	e.flow.page = page
	if e.Client.server != nil && e.Client.fetches.Load() == 0 {
		return fail("With Pasteport, set doctor-client: true and leave --certificate out. Or start the server with "+
			"SSL_CERT_FILE="+e.Client.certificate+
			" in its environment, and Pasteport with --dev too, so that it trusts the certificate of "+e.Client.ID+".",
			"%d: the server did not fetch the client's document (page: %q)", page.Status, page.Title)
	}
	if page.Status >= http.StatusBadRequest {
		return fail("Fetch "+e.Client.ID+
			" from the machine of the authorization server: check DNS, its firewall (outgoing port 443, "+
			"or metadata-proxy of Pasteport if a proxy is the only way out), the certificate and the trusted "+
			"authorities. Its log has the cause.", "the page shows %d: %q, %s", page.Status, page.Title, page.Code)
	}
	if refusal := refusalOf(page); refusal != "" {
		return fail("Make the server accept what its own metadata advertises.", "it responds with %s", refusal)
	}
	return ok("%d %q", page.Status, page.Title)
}

// visit acts as the person, within the limit of a request.
func (e *examination) visit(ctx context.Context,
	act func(context.Context, browser.Person) (*browser.Page, error)) (*browser.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, e.Limit)
	defer cancel()
	page, err := act(ctx, browser.Person{Token: e.Token, Fields: e.Fields, Transport: e.wire})
	return page, e.wire.explainTimeout(err)
}

// refusalOf describes the error in the redirect of a page, or returns "".
func refusalOf(page *browser.Page) string {
	refusal := new(browser.Refusal)
	if _, err := page.Answer(); page.Location == nil || !errors.As(err, &refusal) {
		return ""
	}
	return refusal.Code + ": " + refusal.Description
}

func (e *examination) authorizationURL(client, redirect string) string {
	challenge := sha256.Sum256([]byte(e.flow.verifier))
	query := url.Values{
		"response_type":         {"code"},
		"client_id":             {client},
		"redirect_uri":          {redirect},
		"state":                 {e.flow.state},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(challenge[:])},
		"code_challenge_method": {"S256"},
		"resource":              {e.resource.text("resource")},
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

// consent recognizes Pasteport's form; the page of another server needs a person.
func (e *examination) consent(context.Context) checkResult {
	page := e.flow.page
	if !page.AsksForToken() {
		return fail("Let the proxy pass the consent page unchanged; if it is the page of another "+
			"authorization server, "+
			"log in there with a browser.", "the page %q has no form for a token", page.Title)
	}
	if empty := (browser.Person{Fields: e.Fields}).Empty(page); len(empty) > 0 {
		return fail("Pass --field "+empty[0]+"=VALUE, or --field "+empty[0]+"= if the page shows that it is optional.",
			"the site asks for %q besides the token", empty[0])
	}
	target := page.Action.String()
	if !sameOrigin(target, e.server.text("authorization_endpoint")) {
		return fail("Let the form post to the authorization endpoint; check whether the proxy rewrites pages.",
			"the form would send the token to %q, so doctor does not submit it", target)
	}
	if !e.mayReceiveToken(target) {
		return fail("If the token may go there, pass --authorization-server "+originOf(page.Action)+".",
			"the login is on %s, another host than that of the URL, so doctor does not send the token",
			originOf(page.Action))
	}
	return ok("%q; the token goes to %s", page.Title, originOf(page.Action))
}

// mayReceiveToken reports whether the person's token may go to the address, which comes from
// metadata and so can be on a host of somebody else.
func (e *examination) mayReceiveToken(target string) bool {
	return sameOrigin(target, e.Endpoint.String()) || e.TokenTo != "" && sameOrigin(target, e.TokenTo)
}

func (e *examination) approve(ctx context.Context) checkResult {
	page, err := e.visit(ctx, func(ctx context.Context, person browser.Person) (*browser.Page, error) {
		return person.Approve(ctx, e.flow.page)
	})
	if err != nil {
		return fail("See the log of the authorization server.", "%v", err)
	}
	switch page.Status {
	case http.StatusSeeOther, http.StatusFound:
		return e.readCallback(page)
	case http.StatusForbidden:
		return fail("Pass a --token that the site accepts, or find out why the site refuses it.",
			"the page shows 403: %q", page.Title)
	case http.StatusServiceUnavailable:
		return fail("Check the verifier of tokens: the site, or with a gateway the MCP server behind it, which must "+
			"run at the exact address in "+
			"upstream, respond there without a redirect, and refuse tokens that it does not know. The log and "+
			"`pasteport trace --doctor` have the cause.",
			"the page shows 503: %q", page.Title)
	}
	return fail("See the log of the authorization server, and of the verifier of its tokens.",
		"the page shows %d: %q", page.Status, page.Title)
}

func (e *examination) readCallback(page *browser.Page) checkResult {
	if page.Location == nil {
		return fail("See the log of the authorization server.", "the redirect names no address")
	}
	query := page.Location.Query()
	e.hide(query.Get("code"))
	if refusal := refusalOf(page); refusal != "" {
		return fail("See the log of the authorization server.", "it responds with %s", refusal)
	}
	if !strings.HasPrefix(page.Location.String(), redirect+"?") {
		return fail("Send the browser to the redirect_uri of the request, byte for byte.",
			"it sends the browser to %s", originOf(page.Location))
	}
	iss := query.Get("iss")
	switch {
	case len(query["code"]) != 1 || query.Get("code") == "":
		return fail("Send the code exactly once.", "the redirect has %d codes", len(query["code"]))
	case !slices.Equal(query["state"], []string{e.flow.state}):
		return fail("Return state once, exactly as it came.", "state is changed, repeated or missing")
	case iss != e.server.text("issuer") &&
		(iss != "" || e.server.flag("authorization_response_iss_parameter_supported")):
		return fail("Send iss, spelled like issuer in the metadata.", "iss is %q, the issuer is %q", iss,
			e.server.text("issuer"))
	}
	e.flow.code = query.Get("code")
	return ok("a code, the state, and the issuer %q", iss)
}

// redeem sends a form to the token endpoint and stores the returned tokens.
func (e *examination) redeem(ctx context.Context, form url.Values) checkResult {
	form.Set("client_id", e.Client.ID)
	form.Set("resource", e.resource.text("resource"))
	a := e.wire.post(ctx, e.server.text("token_endpoint"), form)
	d := parse(a)
	e.hide(d.text("access_token"), d.text("refresh_token"))
	switch {
	case a.err != nil:
		return fail("See the log of the authorization server.", "%s", a)
	case d.malformed != nil:
		return fail("Return JSON.", "%v", d.malformed)
	case a.status != http.StatusOK:
		return fail("See the log of the authorization server; a code can be used once, within minutes, by the client "+
			"that requested it.",
			"%d %s: %s", a.status, d.text("error"), d.text("error_description"))
	case d.text("access_token") == "" || !strings.EqualFold(d.text("token_type"), "Bearer"):
		return fail("Return access_token and token_type Bearer (RFC 6749 §5.1).", "the response has no bearer token")
	}
	e.flow.granted, e.flow.access = a, d.text("access_token")
	if next := d.text("refresh_token"); next != "" {
		e.flow.refresh = next
	}
	return ok("an access token for %v seconds, scope %q", d.members["expires_in"], d.text("scope"))
}

func (e *examination) exchange(ctx context.Context) checkResult {
	return e.redeem(ctx, url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {e.flow.code},
		"code_verifier": {e.flow.verifier},
		"redirect_uri":  {redirect},
	})
}

func (e *examination) renew(ctx context.Context) checkResult {
	if e.flow.refresh == "" {
		return warn("Issue a refresh token to clients that request offline_access.", "there is no refresh token")
	}
	return e.redeem(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {e.flow.refresh}})
}

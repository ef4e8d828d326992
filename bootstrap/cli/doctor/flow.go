package doctor

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest/browser"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// redirect is the redirect URI of the login. No server listens there: doctor acts as the browser
// and reads the code from the Location header. The document leaves the port out; a server must
// accept any port of a loopback address (RFC 8252 §7.3).
const redirect = "http://127.0.0.1:33571/callback"

// flow is the state of one login.
type flow struct {
	client, state, verifier string
	page                    *browser.Page // of the consent
	code                    string
	access, refresh         string
}

var flowChecks = []check{
	{
		id:       "flow.client",
		question: "Does the authorization server accept doctor as a client?",
		needs:    []string{"authorize.page"},
		why:      "A login needs a client. With doctor-client, Pasteport publishes the document of doctor.",
		run:      (*examination).authorize,
	},
	{
		id:       "flow.consent",
		question: "Is the person asked for a token?",
		needs:    []string{"flow.client"},
		why:      "A client must not get a token without the person's consent.",
		run:      (*examination).consent,
	},
	{
		id:       "flow.approve",
		question: "Does the browser return with a code?",
		needs:    []string{"flow.consent"},
		why: "The redirect must carry the code once, the state of the request (RFC 6749 §4.1.2) and the issuer " +
			"(RFC 9207).",
		run: (*examination).approve,
	},
	{
		id:       "flow.exchange",
		question: "Is the code exchanged for tokens?",
		needs:    []string{"flow.approve", "token.answer"},
		why:      "A client needs both tokens, and no cache may keep them.",
		run:      (*examination).exchange,
	},
	{
		id:       "flow.tools",
		question: "Does the MCP server accept the token?",
		needs:    []string{"flow.exchange"},
		why:      "After a login, clients open a session and list the tools.",
		run:      (*examination).tools,
	},
	{
		id:       "flow.stream",
		question: "Do events arrive immediately?",
		needs:    []string{"flow.exchange"},
		why:      "A proxy that buffers responses holds events back until the client times out.",
		run:      (*examination).stream,
	},
	{
		id:       "flow.refresh",
		question: "Can the client refresh its tokens?",
		needs:    []string{"flow.exchange"},
		why:      "Otherwise people must log in again whenever the access token expires.",
		run:      (*examination).renew,
	},
	{
		id:       "flow.revoke",
		question: "Can the tokens be revoked, and are they refused then?",
		needs:    []string{"flow.exchange"},
		why:      "The tokens of a removed client should end with it (RFC 7009).",
		run:      (*examination).revoke,
	},
}

// authorize opens the authorization endpoint like a browser.
func (e *examination) authorize(ctx context.Context) finding {
	if e.options.token == "" {
		return skip("because a login needs --token")
	}
	e.flow.client = e.issuer + service.DoctorDocument
	page, err := e.ask(ctx, e.flow.client, redirect)
	if refusal := explainRefusal(page, err); refusal != "" {
		return fail("Set doctor-client: true on the server. If the server reports another problem, its log has the "+
			"cause.", "%s", refusal)
	}
	e.flow.page = page
	return ok("%d %q", page.Status, page.Title)
}

// ask sends an authorization request for a client, as the browser of a person.
func (e *examination) ask(ctx context.Context, client, redirect string) (*browser.Page, error) {
	e.flow.state, e.flow.verifier = rand.Text(), rand.Text()+rand.Text()
	e.hide(e.flow.verifier)
	return e.visit(ctx, func(ctx context.Context, person browser.Person) (*browser.Page, error) {
		return person.Open(ctx, e.authorizationURL(client, redirect))
	})
}

// visit acts as the person, within the limit of a request.
func (e *examination) visit(ctx context.Context,
	act func(context.Context, browser.Person) (*browser.Page, error)) (*browser.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, e.limit)
	defer cancel()
	page, err := act(ctx, browser.Person{Token: e.options.token, Fields: e.fields, Transport: e.wire})
	return page, e.wire.explainTimeout(err)
}

// explainRefusal describes the error of a page or in its redirect, or returns "".
func explainRefusal(page *browser.Page, err error) string {
	refusal := new(browser.Refusal)
	switch {
	case err != nil:
		return err.Error()
	case page.Status >= http.StatusBadRequest:
		return strings.TrimSuffix(pageOf(page)+": "+page.Code, ": ")
	case page.Location == nil:
		return ""
	}
	if _, err := page.Answer(); errors.As(err, &refusal) {
		return "the server responds with " + refusal.Code + ": " + refusal.Description
	}
	return ""
}

func pageOf(page *browser.Page) string {
	return fmt.Sprintf("the page shows %d: %q", page.Status, page.Title)
}

func (e *examination) authorizationURL(client, redirect string) string {
	challenge := sha256.Sum256([]byte(e.flow.verifier))
	scopes := append(e.resource.list("scopes_supported"), "offline_access")
	return e.server.text("authorization_endpoint") + "?" + url.Values{
		"response_type":         {"code"},
		"client_id":             {client},
		"redirect_uri":          {redirect},
		"state":                 {e.flow.state},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(challenge[:])},
		"code_challenge_method": {"S256"},
		"resource":              {e.resource.text("resource")},
		"scope":                 {strings.Join(scopes, " ")},
	}.Encode()
}

func (e *examination) consent(context.Context) finding {
	page := e.flow.page
	if !page.AsksForToken() {
		return fail("Let the proxy pass the consent page unchanged.", "the page %q has no form for a token",
			page.Title)
	}
	if empty := (browser.Person{Fields: e.fields}).Empty(page); len(empty) > 0 {
		return fail("Pass --field "+empty[0]+"=VALUE, or --field "+empty[0]+"= if the page shows that it is optional.",
			"the site asks for %q besides the token", empty[0])
	}
	target := page.Action.String()
	if !sameOrigin(target, e.issuer) {
		return fail("Let the form post to the authorization endpoint; check whether the proxy rewrites pages.",
			"the form would send the token to %q, so doctor does not submit it", target)
	}
	if !sameOrigin(target, e.endpoint.String()) && !sameOrigin(target, e.authorizationServer) {
		return fail("If the token may go there, pass --authorization-server "+originOf(page.Action)+".",
			"the login is on %s, another host than that of the URL, so doctor does not send the token",
			originOf(page.Action))
	}
	return ok("%q; the token goes to %s", page.Title, originOf(page.Action))
}

func (e *examination) approve(ctx context.Context) finding {
	page, err := e.visit(ctx, func(ctx context.Context, person browser.Person) (*browser.Page, error) {
		return person.Approve(ctx, e.flow.page)
	})
	switch {
	case err != nil:
		return fail(mendLog, "%v", err)
	case page.Location != nil:
		return e.readCallback(page)
	case page.Status == http.StatusForbidden:
		return fail("Pass a --token that the site accepts, or find out why the site refuses it: the log and "+
			"`pasteport trace --doctor` have the cause. With a gateway whose MCP server verifies the token, present "+
			"must send it as the server expects it.", "%s", pageOf(page))
	case page.Status == http.StatusServiceUnavailable:
		return fail("Check the verifier of tokens: the site, or with a gateway the MCP server behind it, which must "+
			"run at the exact address in upstream, respond there without a redirect, and refuse tokens that it does "+
			"not know. The log and `pasteport trace --doctor` have the cause.", "%s", pageOf(page))
	}
	return fail(mendLog, "%s", pageOf(page))
}

const mendLog = "See the log of the authorization server."

func (e *examination) readCallback(page *browser.Page) finding {
	query := page.Location.Query()
	e.hide(query.Get("code"))
	switch refusal := explainRefusal(page, nil); {
	case refusal != "":
		return fail(mendLog, "%s", refusal)
	case !strings.HasPrefix(page.Location.String(), redirect+"?"):
		return fail("Send the browser to the redirect_uri of the request, byte for byte.",
			"it sends the browser to %s", originOf(page.Location))
	case len(query["code"]) != 1 || query.Get("code") == "" || !slices.Equal(query["state"], []string{e.flow.state}) ||
		!slices.Equal(query["iss"], []string{e.issuer}):
		return fail("Let the proxy pass the redirect unchanged.",
			"the redirect has %s and iss %q, or another state than the request",
			term.Count(len(query["code"]), "code"), query["iss"])
	}
	e.flow.code = query.Get("code")
	return ok("a code, the state, and the issuer")
}

// redeem sends a form to the token endpoint and stores the returned tokens.
func (e *examination) redeem(ctx context.Context, form url.Values) finding {
	form.Set("client_id", e.flow.client)
	form.Set("resource", e.resource.text("resource"))
	d := parse(e.wire.post(ctx, e.server.text("token_endpoint"), form))
	e.hide(d.text("access_token"), d.text("refresh_token"))
	if d.err != nil || d.status != http.StatusOK || d.text("access_token") == "" || d.text("refresh_token") == "" {
		return fail(mendLog+" A code can be used once, within minutes, by the client that requested it.",
			"%s without both tokens: %s: %s", d, d.text("error"), d.text("error_description"))
	}
	e.flow.access, e.flow.refresh = d.text("access_token"), d.text("refresh_token")
	if result := checkNoStore(d.answer); result.Status != statusOK {
		return result
	}
	return ok("an access token for %v seconds, scope %q", d.members["expires_in"], d.text("scope"))
}

func (e *examination) exchange(ctx context.Context) finding {
	return e.redeem(ctx, url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {e.flow.code},
		"code_verifier": {e.flow.verifier},
		"redirect_uri":  {redirect},
	})
}

func (e *examination) renew(ctx context.Context) finding {
	return e.redeem(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {e.flow.refresh}})
}

func (e *examination) revoke(ctx context.Context) finding {
	for _, token := range []string{e.flow.access, e.flow.refresh} {
		a := e.wire.post(ctx, e.server.text("revocation_endpoint"),
			url.Values{"token": {token}, "client_id": {e.flow.client}})
		if a.status != http.StatusOK {
			return fail("Let the proxy pass POST to the revocation endpoint.", "%s", a)
		}
	}
	a := e.call(ctx, e.endpoint.String(), "Authorization", "Bearer "+e.flow.access)
	if a.status != http.StatusUnauthorized {
		return fail("Make the MCP server check each token with the authorization server.",
			"%s to the revoked access token", a)
	}
	return ok("revoked, and refused with 401")
}

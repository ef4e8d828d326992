package doctor

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest/browser"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// redirect is the redirect URI of the login. No server listens there: doctor acts as the browser
// and reads the code from the Location header. The client's document has this URI without a port,
// because a server must accept any port of a loopback address (RFC 8252 §7.3).
const redirect = "http://127.0.0.1:33571/callback"

const logFix = "See the log of the authorization server."

func login(ctx context.Context, p *probe) (seen, fix string) {
	switch {
	case p.token == "":
		return "", "because a login needs --token"
	case p.server == nil:
		return "", "because the metadata is not known"
	}
	for _, step := range []func(context.Context, *probe) (seen, fix string){
		authorize, consent, approve, exchange, tools,
	} {
		if seen, fix = step(ctx, p); fix != "" {
			return seen, fix
		}
	}
	return seen, ""
}

func (p *probe) clientID() string { return p.server.Issuer + service.DoctorDocument }

func (p *probe) oauth() *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.clientID(),
		Endpoint: oauth2.Endpoint{
			AuthURL:   p.server.AuthorizationEndpoint,
			TokenURL:  p.server.TokenEndpoint,
			AuthStyle: oauth2.AuthStyleInParams,
		},
		RedirectURL: redirect,
		Scopes:      append(p.resource.ScopesSupported, "offline_access"),
	}
}

func (p *probe) forResource() oauth2.AuthCodeOption {
	return oauth2.SetAuthURLParam("resource", p.resource.Resource)
}

// authorize opens the authorization endpoint like a browser.
func authorize(ctx context.Context, p *probe) (seen, fix string) {
	p.state, p.verifier = rand.Text(), oauth2.GenerateVerifier()
	p.hide(p.verifier)
	address := p.oauth().AuthCodeURL(p.state, oauth2.S256ChallengeOption(p.verifier), p.forResource())
	page, err := p.visit(ctx, func(ctx context.Context, person browser.Person) (*browser.Page, error) {
		return person.Open(ctx, address)
	})
	if refusal := refusalOf(page, err); refusal != "" {
		return refusal, "Set doctor-client: true on the server. If the server reports another problem, its log has " +
			"the cause. If the page is not the server's, let the proxy pass GET and POST of the authorization endpoint."
	}
	p.page = page
	return pageOf(page), ""
}

// visit calls act with the person, within the time limit of a request.
func (p *probe) visit(ctx context.Context,
	act func(context.Context, browser.Person) (*browser.Page, error)) (*browser.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	return act(ctx, browser.Person{Token: p.token, Fields: p.fields, Transport: p})
}

// refusalOf describes err, or the error that the page or its redirect has; "" for none.
func refusalOf(page *browser.Page, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case page.Status >= http.StatusBadRequest:
		return strings.TrimSuffix(pageOf(page)+": "+page.Code, ": ")
	case page.Location == nil:
		return ""
	}
	if _, err := page.Answer(); err != nil {
		return err.Error()
	}
	return ""
}

func pageOf(page *browser.Page) string {
	return fmt.Sprintf("the page shows %d: %q", page.Status, page.Title)
}

func consent(_ context.Context, p *probe) (seen, fix string) {
	if !p.page.AsksForToken() {
		return fmt.Sprintf("the page %q has no form for a token", p.page.Title),
			"Let the proxy pass the consent page unchanged."
	}
	if empty := (browser.Person{Fields: p.fields}).Empty(p.page); len(empty) > 0 {
		return fmt.Sprintf("the site asks for %q besides the token", empty[0]),
			"Pass --field " + empty[0] + "=VALUE, or --field " + empty[0] + "= if the page shows that it is optional."
	}
	target, origin := p.page.Action.String(), originOf(p.page.Action)
	if !sameOrigin(target, p.server.Issuer) {
		return fmt.Sprintf("the form would send the token to %q, so doctor does not submit it", target),
			"Let the form post to the authorization endpoint; check whether the proxy rewrites pages."
	}
	if !sameOrigin(target, p.endpoint.String()) && !sameOrigin(target, p.authorizationServer) {
		return "the login is on " + origin + ", another host than that of the URL, so doctor does not send the token",
			"If the token may go there, pass --authorization-server " + origin + "."
	}
	return "the token goes to " + origin, ""
}

func approve(ctx context.Context, p *probe) (seen, fix string) {
	page, err := p.visit(ctx, func(ctx context.Context, person browser.Person) (*browser.Page, error) {
		return person.Approve(ctx, p.page)
	})
	switch {
	case err != nil:
		return err.Error(), logFix
	case page.Location != nil: // a redirect, which is checked below
	case page.Status == http.StatusForbidden:
		return pageOf(page), "Pass a --token that the site accepts, or find out why the site refuses it: the log and " +
			"`pasteport trace --doctor` have the cause. With a gateway whose MCP server verifies the token, present " +
			"must send it as the server expects it."
	case page.Status == http.StatusServiceUnavailable:
		return pageOf(page), "Check the verifier of tokens: the site, or with a gateway the MCP server behind it, " +
			"which must run at the exact address in upstream, respond there without a redirect, and refuse tokens " +
			"that it does not know. The log and `pasteport trace --doctor` have the cause."
	default:
		return pageOf(page), logFix
	}
	query := page.Location.Query()
	p.code = query.Get("code")
	p.hide(p.code)
	switch refusal := refusalOf(page, nil); {
	case refusal != "":
		return refusal, logFix
	case !strings.HasPrefix(page.Location.String(), redirect+"?"):
		return "the page sends the browser to " + originOf(page.Location),
			"Send the browser to the redirect_uri of the request, byte for byte."
	case len(query["code"]) != 1 || p.code == "" || !slices.Equal(query["state"], []string{p.state}) ||
		!slices.Equal(query["iss"], []string{p.server.Issuer}):
		return fmt.Sprintf("the redirect has %s and iss %q, or another state than the request",
			term.Count(len(query["code"]), "code"), query["iss"]), "Let the proxy pass the redirect unchanged."
	}
	return "a code, the state, and the issuer", ""
}

func exchange(ctx context.Context, p *probe) (seen, fix string) {
	return p.keep(p.oauth().Exchange(p.withClient(ctx), p.code, oauth2.VerifierOption(p.verifier), p.forResource()))
}

func refresh(ctx context.Context, p *probe) (seen, fix string) {
	return p.keep(p.oauth().TokenSource(p.withClient(ctx), &oauth2.Token{RefreshToken: p.refresh}).Token())
}

// withClient makes the OAuth library send requests as p does.
func (p *probe) withClient(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, p.client(p))
}

// keep keeps the tokens that the token endpoint has returned.
func (p *probe) keep(token *oauth2.Token, err error) (seen, fix string) {
	if refused, isRefusal := errors.AsType[*oauth2.RetrieveError](err); isRefusal { // its text has the whole body
		err = fmt.Errorf("the token endpoint returned %s: %s: %s", refused.Response.Status, refused.ErrorCode,
			refused.ErrorDescription)
	}
	if err != nil {
		return err.Error(), logFix + " A code can be used once, within minutes, by the client that requested it."
	}
	p.hide(token.AccessToken, token.RefreshToken)
	p.access, p.refresh = token.AccessToken, token.RefreshToken
	if token.RefreshToken == "" {
		return "the token endpoint returned no refresh token", logFix
	}
	return "new tokens", ""
}

// tools opens a session with the client of the official SDK and lists the tools.
func tools(ctx context.Context, p *probe) (seen, fix string) {
	session, err := p.openSession(ctx, nil)
	if err != nil {
		return err.Error(), serverFix(err)
	}
	defer func() { _ = session.Close() }()
	listed, err := session.ListTools(ctx, nil)
	if err != nil {
		return err.Error(), serverFix(err)
	}
	names := make([]string, len(listed.Tools))
	for i, tool := range listed.Tools {
		names[i] = tool.Name
	}
	return fmt.Sprintf("%d tools (%s), revision %s", len(names), strings.Join(names, ", "),
		session.InitializeResult().ProtocolVersion), ""
}

func (p *probe) openSession(ctx context.Context, o *sdk.ClientSessionOptions) (*sdk.ClientSession, error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "pasteport-doctor", Version: "1"}, nil)
	return client.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint:             p.endpoint.String(),
		DisableStandaloneSSE: true,
		MaxRetries:           -1, // none
		// The struct hides CancelRequest of oauth2.Transport, which only logs.
		HTTPClient: p.client(struct{ http.RoundTripper }{&oauth2.Transport{
			Source: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: p.access}),
			Base:   p,
		}}),
	}, o)
}

const upstreamFix = "Check the MCP server behind the gateway, not the network between: it must run at the exact " +
	"address in upstream, respond there without a redirect, accept the host name of the request (else set " +
	"upstream-host) and the gateway's credential, and start its responses within upstream-timeout. With " +
	"host-token, it must accept the same tokens as the verifier. The gateway's log has the cause."

// serverFix returns what to do about an error of the MCP server.
func serverFix(err error) string {
	if _, isUpstream := errors.AsType[upstreamError](err); isUpstream {
		return upstreamFix
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "Find out why the MCP server, or the one behind the gateway, is slow; --timeout makes doctor wait " +
			"longer."
	}
	return "See the log of the MCP server. The proxy must pass the Authorization, Mcp-Session-Id and " +
		"MCP-Protocol-Version headers."
}

func revoke(ctx context.Context, p *probe) (seen, fix string) {
	access := p.access
	for _, token := range []string{p.access, p.refresh} {
		a, err := p.post(ctx, p.server.RevocationEndpoint, url.Values{"token": {token}, "client_id": {p.clientID()}})
		switch {
		case err != nil:
			return err.Error(), logFix
		case a.StatusCode != http.StatusOK:
			return a.String(), "Let the proxy pass POST to the revocation endpoint."
		}
	}
	p.access = "" // so that examine does not revoke it again
	a, err := p.initialize(ctx, "Authorization", "Bearer "+access)
	switch {
	case err != nil:
		return err.Error(), serverFix(err)
	case a.StatusCode != http.StatusUnauthorized:
		return a.String() + " to the revoked access token",
			"Make the MCP server check each token with the authorization server."
	}
	return "revoked, and refused with 401", ""
}

// stream checks that no proxy holds back a stream. A stream without a session, as in HTTP+SSE, has
// to deliver an event. If the server has none, the stream of a session only has to open.
func stream(ctx context.Context, p *probe) (seen, fix string) {
	a, seen, fix := p.openStream(ctx)
	if a.Response == nil {
		return seen, fix
	}
	defer a.Body.Close()
	if fix != "" {
		return seen, fix
	}
	if a.StatusCode == http.StatusOK {
		began := time.Now()
		line, err := bufio.NewReader(a.Body).ReadString('\n')
		if err != nil {
			return fmt.Sprintf("the stream is open, but no event arrives: %v", err), bufferFix
		}
		return fmt.Sprintf("%q arrived after %s", line, time.Since(began).Round(time.Millisecond)), ""
	}
	// 2025-11-25 is the last revision with sessions.
	session, err := p.openSession(ctx, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil || session.ID() == "" {
		return "the server has no streams that the client opens", ""
	}
	defer func() { _ = session.Close() }()
	a, seen, fix = p.openStream(ctx, "Mcp-Session-Id", session.ID(), "MCP-Protocol-Version",
		session.InitializeResult().ProtocolVersion)
	if a.Response != nil {
		_ = a.Body.Close()
	}
	return "for a session, " + seen, fix
}

const bufferFix = "Turn buffering off for the MCP endpoint: proxy_buffering off and proxy_http_version 1.1 with " +
	"nginx, no compression and no cache."

func (p *probe) openStream(ctx context.Context, header ...string) (a answer, seen, fix string) {
	a, err := p.open(ctx, http.MethodGet, p.endpoint.String(), "",
		append([]string{"Accept", eventStream, "Authorization", "Bearer " + p.access}, header...)...)
	switch {
	case err != nil && serverFix(err) == upstreamFix:
		return a, err.Error(), upstreamFix
	case err != nil:
		return a, fmt.Sprintf("no event arrives: %v", err), bufferFix
	case a.StatusCode == http.StatusUnauthorized || a.redirects() || a.StatusCode >= http.StatusInternalServerError,
		a.StatusCode == http.StatusOK && a.mediaType() != eventStream:
		fix = "Let the proxy pass GET of the MCP endpoint with its headers."
	}
	return a, fmt.Sprintf("%s as %q", a, a.mediaType()), fix
}

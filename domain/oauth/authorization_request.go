package oauth

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/uri"
)

const maxStateLength = 4096

// AuthorizationRequest is an authorization request (RFC 6749 §4.1.1) whose client and redirect URI
// are verified. Only an AuthorizationRequest builds a Redirect.
type AuthorizationRequest struct {
	Client      Client
	RedirectURI RedirectURI
	Resource    Resource
	Scopes      Scopes
	// ForgetsRefresh is true if the client declares the grant type refresh_token, but gets no
	// refresh token because it does not request OfflineAccess.
	ForgetsRefresh bool

	state     string
	challenge codeChallenge
	settings  *Settings
}

// Redirect is an authorization response, which the browser carries to the client (RFC 6749 §4.1.2).
type Redirect struct {
	Location string
	Host     string
	// Automatic lets an error response redirect without a click on a page: the host is loopback,
	// Config.AutoErrorRedirect is on, or the person has clicked already.
	Automatic bool
}

// Refusal is an error response that Redirect carries to the client (RFC 6749 §4.1.2.1).
type Refusal struct {
	Redirect Redirect
	Reason   error
}

func (r *Refusal) Error() string { return "authorization refused: " + r.Reason.Error() }

// Unwrap returns the refusing *Error.
func (r *Refusal) Unwrap() error { return r.Reason }

// NewAuthorizationRequest checks the other parameters of a request whose client and redirect URI
// the caller has verified. The caller has also checked that p has at most one state. A state that
// cannot be sent back is an *Error, for the error page, because clients ignore a response without
// their state. Every other mistake is a *Refusal.
func NewAuthorizationRequest(client Client, redirect RedirectURI, p Parameters,
	settings *Settings) (*AuthorizationRequest, error) {
	state := p.Get("state")
	switch {
	case len(state) > maxStateLength:
		return nil, Refuse(StateTooLong, "A22", "the state has more than 4096 bytes")
	case !uri.Printable(strings.ReplaceAll(state, " ", "_")):
		return nil, Refuse(StateNotPrintable, "A22", "the state is not printable ASCII")
	}
	request := &AuthorizationRequest{
		Client:      client,
		RedirectURI: redirect,
		state:       state,
		settings:    settings,
	}
	if err := request.read(p); err != nil {
		return nil, request.Refuse(err)
	}
	return request, nil
}

func (r *AuthorizationRequest) read(p Parameters) (err error) {
	if err := p.CheckNotRepeated("response_type", "response_mode", "code_challenge", "code_challenge_method",
		"scope"); err != nil {
		return err
	}
	switch p.Get("response_type") {
	case "code":
	case "":
		return Refuse(InvalidRequest, "A16", "the response_type is missing")
	default:
		return Refuse(UnsupportedResponseType, "A16", "the response_type has to be code")
	}
	if mode := p.Get("response_mode"); mode != "" && mode != "query" {
		return Refuse(InvalidRequest, "A17", "the response_mode has to be query")
	}
	if r.challenge, err = parseCodeChallenge(p.Get("code_challenge"), p.Get("code_challenge_method")); err != nil {
		return err
	}
	if r.Resource, err = r.settings.selectResource(p.All("resource")); err != nil {
		return err
	}
	if r.Scopes, err = r.settings.ScopesOf(r.Resource).resolve(p.Get("scope")); err != nil {
		return err
	}
	switch {
	case !r.Client.MayRefresh:
		r.Scopes = r.Scopes.Without(OfflineAccess)
	case r.Client.DeclaresRefresh && r.settings.RefreshTokens == RefreshRegistered:
		r.Scopes = r.Scopes.With(OfflineAccess)
	}
	r.ForgetsRefresh = r.Client.DeclaresRefresh && !r.Scopes.Has(OfflineAccess)
	return nil
}

// ForeignRedirect reports whether the redirect URI is on another host than the client's document.
// It is false for loopback, a private-use scheme, and a client that registered itself.
func (r *AuthorizationRequest) ForeignRedirect() bool {
	return !r.Client.AuthMethod.SelfRegistered() && !r.RedirectURI.Loopback() && !r.RedirectURI.PrivateScheme() &&
		r.RedirectURI.Host() != r.Client.ID.Host()
}

// CheckCallbackCopy refuses to show the callback URL for copying unless it is on loopback: any
// other works in every browser. It also refuses for a HostedClient, whose name could persuade
// people to copy the URL to another person.
func (r *AuthorizationRequest) CheckCallbackCopy(isHosted bool) error {
	if r.RedirectURI.Loopback() && !isHosted {
		return nil
	}
	return Refuse(InvalidRequest, "B21", "only the address of an app on a computer can be copied")
}

// Grant builds the successful response.
func (r *AuthorizationRequest) Grant(code Secret) Redirect { return r.answer("code", code.Reveal()) }

// Refuse returns a refusal as a *Refusal, and any other err unchanged.
func (r *AuthorizationRequest) Refuse(err error) error {
	kind, refused := KindOf(err)
	if !refused {
		return err
	}
	redirect := r.answer("error", kind.Code(), "error_description", RefusalOf(err).Description)
	return &Refusal{Redirect: redirect, Reason: err}
}

// answer appends the response parameters to the raw redirect URI, so that its query stays
// unchanged.
func (r *AuthorizationRequest) answer(pairs ...string) Redirect {
	if r.state != "" {
		pairs = append(pairs, "state", r.state)
	}
	pairs = append(pairs, "iss", r.settings.Issuer)
	var query []string
	for pair := range slices.Chunk(pairs, 2) {
		query = append(query, pair[0]+"="+url.QueryEscape(pair[1]))
	}
	separator := "?"
	if strings.Contains(r.RedirectURI.raw, "?") {
		separator = "&"
	}
	return Redirect{
		Location:  r.RedirectURI.raw + separator + strings.Join(query, "&"),
		Host:      r.RedirectURI.Host(),
		Automatic: r.RedirectURI.Loopback() || r.settings.AutoErrorRedirect,
	}
}

// Choice is what a person leaves to the client on the consent page. It can only narrow the request.
// A nil Choice leaves everything.
type Choice struct {
	Scopes   Scopes        // the request's first scope, in the order of the catalogue, stays even if it is not here
	Lifetime time.Duration // of the grant, one of Settings.GrantChoices; 0 for the longest
}

// text returns a different text for each choice, so that Ticket.Code derives different codes.
func (c *Choice) text() string {
	if c == nil {
		return ""
	}
	return "\x00" + c.Scopes.String() + "\x00" + c.Lifetime.String()
}

// CheckChoice refuses, with InvalidRequest, a choice that the page did not offer.
func (r *AuthorizationRequest) CheckChoice(by *Choice) error {
	switch {
	case by == nil:
	case !r.Scopes.Contains(by.Scopes):
		return Refuse(InvalidRequest, "B25", "the form allows something that the app did not ask for")
	case by.Lifetime != 0 && !slices.Contains(r.settings.GrantChoices, by.Lifetime):
		return Refuse(InvalidRequest, "B25", "the form has a time that the page did not offer")
	}
	return nil
}

// Chosen returns the scopes that a choice leaves. A scope that a chosen one implies stays, because
// the client could use it anyway.
func (r *AuthorizationRequest) Chosen(by *Choice) Scopes {
	if by == nil {
		return r.Scopes
	}
	chosen := by.Scopes
	catalogue := r.settings.ScopesOf(r.Resource)
	if described := catalogue.Describe(r.Scopes); len(described) > 0 {
		chosen = chosen.With(described[0].Name)
	}
	return catalogue.Expand(chosen).Intersect(r.Scopes)
}

// LongestGrant returns how long a grant may live if the person chooses no shorter time.
func (s *Settings) LongestGrant() time.Duration {
	if len(s.GrantChoices) > 0 {
		return s.GrantChoices[0]
	}
	return s.GrantTTL
}

// Parameters are the decoded parameters of one request, from its query or its form, not from both.
type Parameters map[string][]string

// Get returns the value of a parameter that may occur once; an empty value counts as absent.
func (p Parameters) Get(name string) string {
	if values := p.All(name); len(values) > 0 {
		return values[0]
	}
	return ""
}

// All returns the values of a parameter that may be repeated, without the empty ones.
func (p Parameters) All(name string) []string {
	if !slices.Contains(p[name], "") {
		return p[name]
	}
	return slices.DeleteFunc(slices.Clone(p[name]), func(value string) bool { return value == "" })
}

// CheckNotRepeated refuses with InvalidRequest when one of the named parameters occurs more than
// once (RFC 6749 §3.1).
func (p Parameters) CheckNotRepeated(names ...string) error {
	for _, name := range names {
		if len(p.All(name)) > 1 {
			return Refuse(InvalidRequest, "A5", "a parameter is repeated")
		}
	}
	return nil
}

// CheckNoneRepeated refuses like CheckNotRepeated for every parameter but resource, the only one
// that may be repeated (RFC 8707 §2).
func (p Parameters) CheckNoneRepeated() error {
	for name, values := range p {
		if name != "resource" && len(values) > 1 { // empty ones count, too: no client has a reason to send them
			return Refuse(InvalidRequest, "D5", "a parameter is repeated")
		}
	}
	return nil
}

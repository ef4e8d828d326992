package oauth

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

const maxStateLength = 4096

// AuthorizationRequest is an authorization request (RFC 6749 §4.1.1) whose client and redirect URI
// are verified. Only it can build a Redirect.
type AuthorizationRequest struct {
	client           ClientID
	clientName       string
	declaresClientID bool
	checkedAt        time.Time // see CheckedAt
	authMethod       AuthMethod
	redirect         RedirectURI
	resource         Resource
	state            string
	scopes           Scopes
	forgetsRefresh   bool // see ForgetsRefresh
	challenge        codeChallenge
	settings         *Settings
}

// Redirect is an authorization response, which the browser carries to the client (RFC 6749 §4.1.2).
type Redirect struct {
	Location string
	Host     string
	// Automatic allows the redirect without a person's click, because the host is loopback or
	// trusted by the operator.
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

// NewAuthorizationRequest checks p: client, redirect URI, then the rest. Before the redirect URI is
// verified it returns an *Error, for the error page. It does the same for a state that cannot be
// sent back, because clients ignore a response without their state. Later errors are a *Refusal.
func NewAuthorizationRequest(client *ClientMetadata, p Parameters, settings *Settings) (*AuthorizationRequest, error) {
	if err := p.CheckNotRepeated("client_id", "redirect_uri", "state"); err != nil {
		return nil, err
	}
	redirect, err := client.RedirectURI(p.Get("redirect_uri"), settings.Metadata)
	if err != nil {
		return nil, err
	}
	state := p.Get("state")
	switch {
	case len(state) > maxStateLength:
		return nil, Refuse(StateTooLong, "A22", "the state has more than 4096 bytes")
	case !printable(strings.ReplaceAll(state, " ", "_")):
		return nil, Refuse(StateNotPrintable, "A22", "the state is not printable ASCII")
	}
	request := &AuthorizationRequest{
		client:           client.ID(),
		clientName:       client.Name(),
		declaresClientID: client.DeclaresClientID(),
		checkedAt:        client.checkedAt,
		authMethod:       client.authentication.method,
		redirect:         redirect,
		state:            state,
		settings:         settings,
	}
	if err := request.read(p, client.refreshing); err != nil {
		return nil, request.Refuse(err)
	}
	return request, nil
}

func (r *AuthorizationRequest) read(p Parameters, refreshing refreshing) error {
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
	challenge, err := parseCodeChallenge(p.Get("code_challenge"), p.Get("code_challenge_method"))
	if err != nil {
		return err
	}
	if r.resource, err = r.settings.selectResource(p.All("resource")); err != nil {
		return err
	}
	scopes, err := r.settings.ScopesOf(r.resource).resolve(p.Get("scope"))
	if err != nil {
		return err
	}
	switch {
	case refreshing == refreshExcluded:
		scopes = scopes.Without(OfflineAccess)
	case refreshing == refreshDeclared && r.settings.RefreshTokens == RefreshRegistered:
		scopes = scopes.With(OfflineAccess)
	}
	r.forgetsRefresh = refreshing == refreshDeclared && !scopes.Has(OfflineAccess)
	r.challenge, r.scopes = challenge, scopes
	return nil
}

// Client returns the client_id.
func (r *AuthorizationRequest) Client() ClientID { return r.client }

// ClientName returns the name that the client claims.
func (r *AuthorizationRequest) ClientName() string { return r.clientName }

// DeclaresClientID reports whether the client's document contains its client_id.
func (r *AuthorizationRequest) DeclaresClientID() bool { return r.declaresClientID }

// CheckedAt returns when the client's document was last fetched, if it could not be fetched for
// this request; otherwise zero.
func (r *AuthorizationRequest) CheckedAt() time.Time { return r.checkedAt }

// RedirectURI returns the verified target.
func (r *AuthorizationRequest) RedirectURI() RedirectURI { return r.redirect }

// Resource returns the requested MCP server.
func (r *AuthorizationRequest) Resource() Resource { return r.resource }

// Scopes returns the requested scopes.
func (r *AuthorizationRequest) Scopes() Scopes { return r.scopes }

// ForgetsRefresh reports whether the client gets no refresh token because it does not request
// OfflineAccess, although it declares the grant type.
func (r *AuthorizationRequest) ForgetsRefresh() bool { return r.forgetsRefresh }

// SelfRegistered reports whether the client registered itself, so that only its redirect URI is
// verified.
func (r *AuthorizationRequest) SelfRegistered() bool { return r.authMethod.selfRegistered() }

// ForeignRedirect reports whether the redirect URI is on another host than the client's document.
func (r *AuthorizationRequest) ForeignRedirect() bool {
	return !r.SelfRegistered() && !r.redirect.Loopback() && !r.redirect.PrivateScheme() &&
		r.redirect.Host() != r.client.Host()
}

// CheckCallbackCopy refuses a copy of the callback URL for a client on another computer, unless the
// redirect goes to a loopback host. All other redirects reach the client from any browser, and the
// name of a HostedClient could persuade people to copy the URL to another person.
func (r *AuthorizationRequest) CheckCallbackCopy(s *Settings) error {
	if r.redirect.Loopback() && s.Hosted(r.client) == nil {
		return nil
	}
	return Refuse(InvalidRequest, "B21", "only the address of an app on a computer can be copied")
}

// Grant builds the successful response.
func (r *AuthorizationRequest) Grant(code Secret) Redirect { return r.answer("code", code.Reveal()) }

// Refuse returns err as a *Refusal. It returns an err that is not a refusal unchanged.
func (r *AuthorizationRequest) Refuse(err error) error {
	kind, refused := KindOf(err)
	if !refused {
		return err
	}
	redirect := r.answer("error", kind.Code(), "error_description", refusalOf(err).Description)
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
	if strings.Contains(r.redirect.raw, "?") {
		separator = "&"
	}
	return Redirect{
		Location:  r.redirect.raw + separator + strings.Join(query, "&"),
		Host:      r.redirect.Host(),
		Automatic: r.redirect.Loopback() || r.settings.autoErrorRedirect,
	}
}

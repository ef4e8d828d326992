package oauth

import (
	"net/url"
	"slices"
	"strings"
)

const maxStateLength = 4096

// AuthorizationRequest is a request whose client and redirect URI are verified; only it can build a Redirect.
type AuthorizationRequest struct {
	client      ClientID
	clientName  string
	namesItself bool
	authMethod  AuthMethod
	redirect    RedirectURI
	resource    Resource
	state       string
	scopes      Scopes
	challenge   CodeChallenge
	settings    *Settings
}

// Redirect is an answer that may leave through the browser.
type Redirect struct {
	Location string
	Host     string
	// Automatic allows it without a person's click: the receiver is loopback or trusted by the operator (M13).
	Automatic bool
}

// Refusal is an error that the client is told through Redirect, because client and redirect URI are already verified.
type Refusal struct {
	Redirect Redirect
	Reason   error
}

func (r *Refusal) Error() string { return "authorization refused: " + r.Reason.Error() }

// Unwrap returns the refusing *Error.
func (r *Refusal) Unwrap() error { return r.Reason }

// NewAuthorizationRequest checks p in the order of A10-A31. Until the redirect URI is verified it returns a plain refusal, and also for a
// state that cannot be given back: without it, a client takes no answer for its own. Afterwards it returns a *Refusal.
func NewAuthorizationRequest(client *ClientMetadata, p Parameters, settings *Settings) (*AuthorizationRequest, error) {
	if err := p.Once("client_id", "redirect_uri", "state"); err != nil {
		return nil, err
	}
	redirect, err := client.Redirect(p.Get("redirect_uri"), settings.Metadata)
	if err != nil {
		return nil, err
	}
	state, err := readState(p.Get("state"))
	if err != nil {
		return nil, err
	}
	request := &AuthorizationRequest{
		client: client.ID(), clientName: client.Name(), namesItself: client.NamesItself(), authMethod: client.proof.method,
		redirect: redirect, state: state, settings: settings,
	}
	if err := request.read(p, client.mayRefresh); err != nil {
		return nil, request.Refuse(err)
	}
	return request, nil
}

func (r *AuthorizationRequest) read(p Parameters, mayRefresh bool) error {
	if err := p.Once("response_type", "response_mode", "code_challenge", "code_challenge_method", "scope"); err != nil {
		return err
	}
	if err := checkResponse(p); err != nil {
		return err
	}
	challenge, err := ParseCodeChallenge(p.Get("code_challenge"), p.Get("code_challenge_method"))
	if err != nil {
		return err
	}
	scopes, err := r.settings.Catalogue.Request(p.Get("scope"))
	if err != nil {
		return err
	}
	if !mayRefresh {
		scopes = scopes.Without(OfflineAccess)
	}
	r.challenge, r.scopes = challenge, scopes
	r.resource, err = r.settings.chosen(p.All("resource"))
	return err
}

// readState takes a state that can be given back (A22).
func readState(state string) (string, error) {
	switch {
	case len(state) > maxStateLength:
		return "", Refuse(StateTooLong, "A22", "the state has more than 4096 bytes")
	case !printable(strings.ReplaceAll(state, " ", "_")):
		return "", Refuse(StateNotPrintable, "A22", "the state is not printable ASCII")
	}
	return state, nil
}

func checkResponse(p Parameters) error {
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
	return nil
}

// Client returns the client_id.
func (r *AuthorizationRequest) Client() ClientID { return r.client }

// ClientName returns the client's claim about its name.
func (r *AuthorizationRequest) ClientName() string { return r.clientName }

// NamesItself reports whether the client's document carries its own client_id (C23).
func (r *AuthorizationRequest) NamesItself() bool { return r.namesItself }

// RedirectURI returns the verified target.
func (r *AuthorizationRequest) RedirectURI() RedirectURI { return r.redirect }

// Resource returns the MCP server that the client would reach.
func (r *AuthorizationRequest) Resource() Resource { return r.resource }

// Scopes returns what would be granted.
func (r *AuthorizationRequest) Scopes() Scopes { return r.scopes }

// ForeignRedirect reports whether the answer goes to another host than the one that published the client (A36).
func (r *AuthorizationRequest) ForeignRedirect() bool {
	return !r.redirect.Loopback() && !r.redirect.PrivateScheme() && r.redirect.Host() != r.client.Host()
}

// Grant builds the successful answer (B11).
func (r *AuthorizationRequest) Grant(code Secret) Redirect { return r.answer("code", code.Reveal()) }

// Refuse builds the unsuccessful answer (A39); an err that is no refusal passes unchanged.
func (r *AuthorizationRequest) Refuse(err error) error {
	kind, refused := KindOf(err)
	if !refused {
		return err
	}
	redirect := r.answer("error", kind.Code(), "error_description", descriptionOf(err))
	return &Refusal{Redirect: redirect, Reason: err}
}

// answer appends to the raw URI, which is never rebuilt, so its own query stays as it was published.
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
		Automatic: r.settings.trustsRedirect(r.redirect),
	}
}

package oauth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
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
	challenge        CodeChallenge
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
	state, err := readState(p.Get("state"))
	if err != nil {
		return nil, err
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
	if err := request.read(p, client.mayRefresh); err != nil {
		return nil, request.Refuse(err)
	}
	return request, nil
}

func (r *AuthorizationRequest) read(p Parameters, mayRefresh bool) error {
	if err := p.CheckNotRepeated("response_type", "response_mode", "code_challenge", "code_challenge_method",
		"scope"); err != nil {
		return err
	}
	if err := checkResponse(p); err != nil {
		return err
	}
	challenge, err := ParseCodeChallenge(p.Get("code_challenge"), p.Get("code_challenge_method"))
	if err != nil {
		return err
	}
	scopes, err := r.settings.Catalogue.Resolve(p.Get("scope"))
	if err != nil {
		return err
	}
	if !mayRefresh {
		scopes = scopes.Without(OfflineAccess)
	}
	r.challenge, r.scopes = challenge, scopes
	r.resource, err = r.settings.selectResource(p.All("resource"))
	return err
}

// readState refuses a state that is too long or not printable.
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

// SelfRegistered reports whether the client registered itself, so that only its redirect URI is
// verified.
func (r *AuthorizationRequest) SelfRegistered() bool { return r.authMethod == SealedClientID }

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

// Refuse returns err as a *Refusal. It returns an err that is no refusal unchanged.
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
		Automatic: r.settings.trustsRedirect(r.redirect),
	}
}

// CodeChallenge is the S256 challenge of RFC 7636.
type CodeChallenge struct{ encoded string }

// ParseCodeChallenge accepts S256 only and refuses with InvalidRequest.
func ParseCodeChallenge(challenge, method string) (CodeChallenge, error) {
	switch {
	case challenge == "":
		return CodeChallenge{}, Refuse(InvalidRequest, "A19", "the code_challenge is missing")
	case method != "S256":
		return CodeChallenge{}, Refuse(InvalidRequest, "A20", "the code_challenge_method has to be S256")
	}
	if _, ok := decode32(challenge); !ok {
		return CodeChallenge{},
			Refuse(InvalidRequest, "A21", "the code_challenge is not the base64url form of a SHA-256")
	}
	return CodeChallenge{challenge}, nil
}

// decode32 reads 43 characters of unpadded base64url as 32 bytes. It checks for line breaks itself
// because Go's decoder skips them, even when strict.
func decode32(encoded string) (decoded [32]byte, ok bool) {
	if len(encoded) != 43 || strings.ContainsAny(encoded, "\r\n") {
		return decoded, false
	}
	_, err := base64.RawURLEncoding.Strict().Decode(decoded[:], []byte(encoded))
	return decoded, err == nil
}

// RestoreCodeChallenge rebuilds a challenge that was accepted before.
func RestoreCodeChallenge(encoded string) CodeChallenge { return CodeChallenge{encoded} }

// String returns the challenge as it was sent; it is public.
func (c CodeChallenge) String() string { return c.encoded }

const (
	minVerifierLength  = 43
	maxVerifierLength  = 128
	verifierCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
)

// VerifiedBy reports whether verifier is well-formed and hashes to the challenge (RFC 7636 §4.6).
func (c CodeChallenge) VerifiedBy(verifier string) bool {
	if len(verifier) < minVerifierLength || len(verifier) > maxVerifierLength ||
		strings.Trim(verifier, verifierCharacters) != "" {
		return false
	}
	challenge, ok := decode32(c.encoded)
	proof := sha256.Sum256([]byte(verifier))
	return ok && subtle.ConstantTimeCompare(proof[:], challenge[:]) == 1
}

// Parameters are the decoded parameters of one request, from its query or its form, never from
// both.
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

// CheckNoneRepeated refuses like Once for every parameter but resource, the only one that may be
// repeated (RFC 8707 §2).
func (p Parameters) CheckNoneRepeated() error {
	for name := range p {
		if name == "resource" {
			continue
		}
		if len(p[name]) > 1 { // also an empty one: no client has a reason to send it
			return Refuse(InvalidRequest, "D5", "a parameter is repeated")
		}
	}
	return nil
}

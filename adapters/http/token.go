package http

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// token exchanges a code or a refresh token. A request that is refused here changes no state.
func (e *Endpoints) token(c echo.Context) error {
	form, err := readClientForm(c)
	if err != nil {
		return err
	}
	var issue func(context.Context, client.Credentials, oauth.Parameters) (*oauth.Tokens, error)
	switch form.Get("grant_type") {
	case "authorization_code":
		issue = e.server.Tokens.Exchange
	case "refresh_token":
		issue = e.server.Tokens.Refresh
	case "":
		return oauth.Refuse(oauth.InvalidRequest, "D6", "the grant_type is missing")
	default:
		return oauth.Refuse(oauth.UnsupportedGrantType, "D6",
			"the grant_type has to be authorization_code or refresh_token")
	}
	credentials, err := identify(c.Request(), form)
	if err != nil {
		return err
	}
	if credentials == (client.Credentials{}) {
		return oauth.Refuse(oauth.InvalidRequest, "D9", "the client_id is missing")
	}
	tokens, err := issue(e.contextOf(c), credentials, form)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, tokenResponse{
		AccessToken:  tokens.Access.Reveal(),
		TokenType:    "Bearer",
		ExpiresIn:    int64(tokens.Lifetime.Seconds()),
		Scope:        tokens.Scopes.String(),
		RefreshToken: tokens.Refresh.Reveal(),
	})
}

// tokenResponse is the successful response (RFC 6749 §5.1).
type tokenResponse struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"` // seconds
	Scope        string `json:"scope"`
	RefreshToken string `json:"refresh_token,omitempty"`
}

// clientParameters are refused in the query, which ends up in logs.
var clientParameters = []string{
	"grant_type", "code", "code_verifier", "redirect_uri", "refresh_token", "scope", "resource",
	"client_id", "client_secret", "client_assertion", "client_assertion_type", "token", "token_type_hint",
}

// readClientForm reads the form of a client or of an MCP server.
func readClientForm(c echo.Context) (oauth.Parameters, error) {
	form, err := readForm(c, http.StatusBadRequest)
	if err != nil {
		return nil, err
	}
	query, err := readQuery(c.Request())
	if err != nil {
		return nil, err
	}
	for _, name := range clientParameters {
		if _, present := query[name]; present {
			return nil, oauth.Refuse(oauth.InvalidRequest, "D4", "parameters belong in the body, not in the URL")
		}
	}
	return form, form.CheckNoneRepeated()
}

// identify returns the client's credentials from the form, or from a Basic header, which the
// official Go SDK sends first, with an empty password.
func identify(r *http.Request, form oauth.Parameters) (client.Credentials, error) {
	if len(r.Header.Values(echo.HeaderAuthorization)) > 1 {
		return client.Credentials{},
			oauth.Refuse(oauth.InvalidRequest, "D7", "there is more than one Authorization header")
	}
	named, password, err := basicCredentials(r.Header.Get(echo.HeaderAuthorization))
	if err != nil {
		return client.Credentials{}, err
	}
	if password != "" && form.Get("client_secret") != "" {
		return client.Credentials{}, oauth.Refuse(oauth.InvalidRequest, "D7",
			"the client_secret is in the Authorization header and in the body")
	}
	assertion, kind := form.Get("client_assertion"), form.Get("client_assertion_type")
	if assertion+kind != "" && (assertion == "" || kind != jwtBearer) {
		return client.Credentials{}, oauth.RefuseClient()
	}
	id := form.Get("client_id")
	if named != "" && id != "" && id != named {
		return client.Credentials{},
			oauth.Refuse(oauth.InvalidRequest, "D7", "the client_id is not the one of the Authorization header")
	}
	return client.Credentials{
		Client:    cmp.Or(id, named),
		Assertion: assertion,
		Secret:    oauth.NewClientSecret(cmp.Or(password, form.Get("client_secret"))),
	}, nil
}

// jwtBearer is the type of client assertions (RFC 7523 §2.2).
const jwtBearer = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// basicCredentials returns the form-decoded user name and password of a Basic header (RFC 6749
// §2.3.1); other schemes are ignored. It cuts at the last colon, because many clients, such as the
// official TypeScript SDK, do not encode those of a client_id; a secret of this server has none.
func basicCredentials(header string) (user, password string, err error) {
	scheme, _, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Basic") {
		return "", "", nil
	}
	user, password, ok := (&http.Request{Header: http.Header{echo.HeaderAuthorization: {header}}}).BasicAuth()
	if more := strings.LastIndex(password, ":"); more >= 0 {
		user, password = user+":"+password[:more], password[more+1:]
	}
	user, userErr := url.QueryUnescape(user)
	password, passwordErr := url.QueryUnescape(password)
	if !ok || userErr != nil || passwordErr != nil {
		return "", "", oauth.Refuse(oauth.InvalidClient, "D7", "the Basic header is malformed")
	}
	return user, password, nil
}

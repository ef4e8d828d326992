package http

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// introspection is the response to an MCP server elsewhere (RFC 7662 §2.2). For a token that is not
// valid, it has only active.
type introspection struct {
	Active     bool     `json:"active"`
	Scope      string   `json:"scope,omitempty"`
	ClientID   string   `json:"client_id,omitempty"`
	ClientName string   `json:"client_name,omitempty"` // the client's own claim
	TokenType  string   `json:"token_type,omitempty"`
	Subject    string   `json:"sub,omitempty"`
	Username   string   `json:"username,omitempty"` // the account, for people
	Roles      []string `json:"roles,omitempty"`
	Audience   string   `json:"aud,omitempty"`
	Issuer     string   `json:"iss,omitempty"`
	IssuedAt   int64    `json:"iat,omitempty"` // seconds
	ExpiresAt  int64    `json:"exp,omitempty"`
}

// introspect takes HTTP Basic only, which keeps the secret out of forms.
func (e *Endpoints) introspect(c echo.Context) error {
	form, err := readClientForm(c)
	if err != nil {
		return err
	}
	resource, secret, err := basicCredentials(c.Request().Header.Get(echo.HeaderAuthorization))
	if err != nil {
		return err
	}
	// An MCP server logs in with the identifier of its resource.
	by := client.Credentials{Client: resource, Secret: oauth.NewClientSecret(secret)}
	if form.Get("token") == "" {
		return oauth.Refuse(oauth.InvalidRequest, "K4", "the token is missing")
	}
	caller, active, err := e.server.Tokens.Introspect(e.contextOf(c), by, form.Get("token"))
	switch {
	case err != nil:
		return err
	case !active:
		return writeJSON(c, http.StatusOK, introspection{})
	}
	return writeJSON(c, http.StatusOK, introspection{
		Active:     true,
		Scope:      caller.Scopes.String(),
		ClientID:   caller.Client.String(),
		ClientName: caller.ClientName,
		TokenType:  "Bearer",
		Subject:    caller.Subject,
		Username:   caller.Account,
		Roles:      caller.Roles,
		Audience:   by.Client,
		Issuer:     e.server.Settings.Issuer,
		IssuedAt:   caller.IssuedAt.Unix(),
		ExpiresAt:  caller.ExpiresAt.Unix(),
	})
}

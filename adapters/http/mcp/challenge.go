package mcp

import (
	"net/http"
	"strings"

	"github.com/pasteport/pasteport/adapters/http/mcp/response"
	"github.com/pasteport/pasteport/domain/oauth"
)

// refusal is a failed check of a request. Its texts are constants without characters that a quoted-string must escape (G12, G17).
type refusal struct {
	status            int
	rule              string
	code, description string
	scope             oauth.Scopes
}

var malformedCredentials = refusal{
	status: http.StatusBadRequest, rule: "G5", code: oauth.InvalidRequest.Code(),
	description: "Present exactly one bearer token, in the Authorization header",
}

// missingToken has no error code (G3, RFC 6750 §3.1).
func missingToken(scope oauth.Scopes) refusal {
	return refusal{status: http.StatusUnauthorized, scope: scope}
}

// invalidToken does not reveal why a token is invalid (G7).
func invalidToken(scope oauth.Scopes) refusal {
	return refusal{
		status: http.StatusUnauthorized, rule: "G6", code: oauth.InvalidToken.Code(), scope: scope,
		description: "The access token is invalid or has expired",
	}
}

func insufficientScope(scope oauth.Scopes) refusal {
	return refusal{
		status: http.StatusForbidden, rule: "G10", code: oauth.InsufficientScope.Code(), scope: scope,
		description: "The access token lacks a scope that this operation needs",
	}
}

// challenger answers refused requests with a challenge that names the metadata of the resource (F7).
type challenger struct{ metadata string }

func (c challenger) refuse(w http.ResponseWriter, r refusal) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("WWW-Authenticate", c.header(r))
	if r.code == "" {
		w.WriteHeader(r.status)
		return
	}
	response.WriteError(w, r.status, r.code, r.description)
}

// header returns the WWW-Authenticate header, with its parameters in the order of G12.
func (c challenger) header(r refusal) string {
	params := []string{`resource_metadata="` + c.metadata + `"`}
	if r.code != "" {
		params = append(params, `error="`+r.code+`"`, `error_description="`+r.description+`"`)
	}
	if _, err := oauth.ParseScopes(r.scope.String()); err == nil && !r.scope.Empty() { // the host may have configured invalid scopes
		params = append(params, `scope="`+r.scope.String()+`"`)
	}
	return "Bearer " + strings.Join(params, ", ")
}

package mcp

import (
	"net/http"
	"strings"

	"github.com/pasteport/pasteport/adapters/http/mcp/response"
	"github.com/pasteport/pasteport/domain/oauth"
)

// refusal is an answer of the bearer check; its texts are fixed and fit into a quoted-string (G12, G17).
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

// missingToken carries no error code: nothing was wrong with what was not there (G3, RFC 6750 §3.1).
func missingToken(scope oauth.Scopes) refusal {
	return refusal{status: http.StatusUnauthorized, scope: scope}
}

// invalidToken is the same for every reason (G7).
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

// challenger writes refusals with the URL of the metadata that this resource publishes (F7).
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

// header builds the one challenge, in the order of G12.
func (c challenger) header(r refusal) string {
	params := []string{`resource_metadata="` + c.metadata + `"`}
	if r.code != "" {
		params = append(params, `error="`+r.code+`"`, `error_description="`+r.description+`"`)
	}
	if _, err := oauth.ParseScopes(r.scope.String()); err == nil && !r.scope.Empty() { // a host may have named what cannot be quoted
		params = append(params, `scope="`+r.scope.String()+`"`)
	}
	return "Bearer " + strings.Join(params, ", ")
}

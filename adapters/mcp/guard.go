package mcp

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/recovered"
	"github.com/pasteport/pasteport/domain/trace"
)

const maxTokenLength = 512

// protect checks a request and passes it to next. The gate and the guard come before the body is
// read. The steps are calls in sequence and not nested handlers, because idle streams keep their
// stack.
func (s *Server) protect(next route) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx := s.options.Begin(c)
		out, r := s.responses.NewWriter(c.Response(), c.Request(), ctx)
		defer out.Finish()
		if !s.gate.admits(out, r) || !s.guard(ctx, out, r) {
			return nil
		}
		audited := s.auditor.begin(out, r)
		m, admitted := s.admit(out, r)
		audited.read(m)
		defer audited.end(ctx)
		if !admitted {
			return nil
		}
		out.Begin(m.ID, m.Listen || r.Method == http.MethodGet)
		s.serve(out, r, m, next)
		s.answerEnded(out)
		return nil
	}
}

// guard sets the caller of a request with a valid access token for this resource, and refuses any
// other request.
func (s *Server) guard(ctx context.Context, out *response.Writer, r *http.Request) (passed bool) {
	token, refused := s.bearer(r)
	if refused != nil {
		traceRefusal(r.Context(), *refused)
		s.challenge.refuse(out, *refused)
		return false
	}
	caller, host, err := s.authenticate(ctx, token)
	if err != nil && !isInvalidToken(err) && ctx.Err() != nil { // the client has gone
		return false
	}
	recorder := trace.From(ctx)
	if r.Method == http.MethodGet {
		recorder.Record(trace.Stream)
	} else {
		recorder.Record(trace.Call)
	}
	if r.Header.Get("Mcp-Method") == "server/discover" {
		recorder.AsksRevision()
	}
	switch {
	case err == nil:
		delete(r.Header, "Authorization") // G14
		out.Identify(token, caller, host)
		return true
	case isInvalidToken(err):
		s.options.Logger.InfoContext(ctx, "refused a bearer token", "reason", err)
		recorder.Refuse(err)
		s.challenge.refuse(out, s.invalid)
	default:
		s.options.Logger.ErrorContext(ctx, "cannot check a bearer token", "error", err)
		recorder.Refuse(err)
		response.Unavailable(out, "The access token cannot be checked just now")
	}
	return false
}

// traceRefusal records a refusal in the trace. A request without a token is the first step of a
// connection and no failure.
func traceRefusal(ctx context.Context, r refusal) {
	recorder := trace.From(ctx)
	if r.code == "" {
		recorder.Record(trace.Challenge)
		return
	}
	recorder.RefuseAt(trace.Call, oauth.Refuse(oauth.InvalidToken, r.rule, r.description))
}

// authenticate returns a panic as an error, which counts as an outage.
func (s *Server) authenticate(ctx context.Context, token string) (caller oauth.Caller, host oauth.HostToken,
	err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("checking a bearer token: %w", recovered.New(value))
		}
	}()
	if s.options.HostTokens != nil {
		return s.options.HostTokens.AuthenticateWithHostToken(ctx, token, s.options.Resource)
	}
	caller, err = s.options.Authorization.Authenticate(ctx, token, s.options.Resource)
	return caller, oauth.HostToken{}, err
}

// bearer returns the bearer token of the Authorization header.
func (s *Server) bearer(r *http.Request) (string, *refusal) {
	headers := r.Header["Authorization"]
	if len(headers) == 0 {
		return "", &s.missing
	}
	if len(headers) > 1 || !isWithoutToken(r.URL.RawQuery) {
		return "", &malformedCredentials
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	token = strings.TrimLeft(token, " ")
	switch {
	case !strings.EqualFold(scheme, "Bearer"), token == "":
		return "", &s.missing
	case len(token) > maxTokenLength, !isToken68(token):
		return "", &s.invalid
	}
	return token, nil
}

// isWithoutToken reports whether a query is valid and has no access_token.
func isWithoutToken(query string) bool {
	if query == "" {
		return true
	}
	values, err := url.ParseQuery(query)
	return err == nil && !values.Has("access_token")
}

// isToken68 reports whether the token has the grammar of RFC 6750 §2.1.
func isToken68(token string) bool {
	body := strings.TrimRight(token, "=")
	for i := range len(body) {
		if !token68[body[i]] {
			return false
		}
	}
	return body != ""
}

var token68 = func() (allowed [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/") {
		allowed[c] = true
	}
	return allowed
}()

func isInvalidToken(err error) bool {
	kind, ok := oauth.KindOf(err)
	return ok && kind == oauth.InvalidToken
}

// refusal is a failed check of a request. Its texts are constants without characters that a
// quoted-string must escape.
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

// missingToken has no error code (RFC 6750 §3.1).
func missingToken(scope oauth.Scopes) refusal {
	return refusal{status: http.StatusUnauthorized, scope: scope}
}

// invalidToken does not reveal why a token is invalid.
func invalidToken(scope oauth.Scopes) refusal {
	return refusal{
		status:      http.StatusUnauthorized,
		rule:        "G6",
		code:        oauth.InvalidToken.Code(),
		scope:       scope,
		description: "The access token is invalid or has expired",
	}
}

func insufficientScope(scope oauth.Scopes) refusal {
	return refusal{
		status:      http.StatusForbidden,
		rule:        "G10",
		code:        oauth.InsufficientScope.Code(),
		scope:       scope,
		description: "The access token lacks a scope that this operation needs",
	}
}

// challenger answers refused requests with a challenge that names the metadata of the resource.
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

// header returns the WWW-Authenticate header, with its parameters in a fixed order.
func (c challenger) header(r refusal) string {
	params := []string{`resource_metadata="` + c.metadata + `"`}
	if r.code != "" {
		params = append(params, `error="`+r.code+`"`, `error_description="`+r.description+`"`)
	}
	// The host may have configured invalid scopes.
	if _, err := oauth.ParseScopes(r.scope.String()); err == nil && !r.scope.Empty() {
		params = append(params, `scope="`+r.scope.String()+`"`)
	}
	return "Bearer " + strings.Join(params, ", ")
}

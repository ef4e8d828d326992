package guard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/stream"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/recovered"
)

const maxTokenLength, maxHostTokenLength = 512, 4096

// identify sets the caller of a request with a valid access token for this resource, and refuses
// any other request.
func (g *Guard) identify(ctx context.Context, out *stream.Writer, r *http.Request) (passed bool) {
	token, refused := g.bearer(r)
	if refused != nil {
		traceRefusal(r.Context(), *refused)
		g.refuse(out, *refused)
		return false
	}
	identity := &stream.Identity{Token: token, Resource: g.options.Resource}
	err := g.authenticate(ctx, identity)
	if err != nil && !stream.IsInvalidToken(err) && ctx.Err() != nil { // the client has gone
		return false
	}
	recorder := attempt.From(ctx)
	if err == nil && identity.Caller.IsDirect() { // it belongs to no attempt to connect
		recorder = new(attempt.Recorder)
	}
	if r.Method == http.MethodGet {
		recorder.Record(attempt.Stream)
	} else {
		recorder.Record(attempt.Call)
	}
	if r.Header.Get(message.MethodHeader) == "server/discover" {
		recorder.AsksRevision() // to tell a client that asks for revisions from one that calls
	}
	switch kind, _ := oauth.KindOf(err); {
	case err == nil:
		delete(r.Header, "Authorization")
		out.Identify(identity)
		return true
	case stream.IsInvalidToken(err):
		g.options.Logger.InfoContext(ctx, "refused a bearer token", "reason", err)
		recorder.Refuse(err)
		g.refuse(out, g.invalid)
	case kind == oauth.TooManyGuesses:
		g.options.Logger.InfoContext(ctx, "did not check a bearer token", "reason", err)
		recorder.Refuse(err)
		if refusal := new(oauth.Error); errors.As(err, &refusal) {
			refuseFor(refusal.RetryAfter, out)
		}
		stream.WriteError(out, http.StatusTooManyRequests, oauth.TooManyGuesses.Code(),
			"Too many tokens that the site does not know came from here; try again later")
	default:
		g.options.Logger.ErrorContext(ctx, "cannot check a bearer token", "error", err)
		recorder.Refuse(err)
		stream.Unavailable(out, "The access token cannot be checked just now")
	}
	return false
}

// traceRefusal records a refusal in the trace. A request without a token is the first step of a
// connection and no failure.
func traceRefusal(ctx context.Context, r refusal) {
	recorder := attempt.From(ctx)
	if r.code == "" {
		recorder.Record(attempt.Challenge)
		return
	}
	recorder.RefuseAt(attempt.Call, oauth.Refuse(oauth.InvalidToken, r.rule, r.description))
}

// authenticate returns a panic as an error, which counts as an outage.
func (g *Guard) authenticate(ctx context.Context, identity *stream.Identity) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("checking a bearer token: %w", recovered.New(value))
		}
	}()
	return g.options.Verify(ctx, identity)
}

// bearer returns the bearer token of the Authorization header, or a host token of another header.
func (g *Guard) bearer(r *http.Request) (string, *refusal) {
	headers := r.Header["Authorization"]
	scheme, token, _ := strings.Cut(strings.Join(headers, ""), " ")
	token = strings.TrimLeft(token, " ")
	isBearer := strings.EqualFold(scheme, "Bearer") && token != ""
	if !isBearer && g.options.HostTokens {
		token = g.options.TakeHostToken(r.Header)
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if len(headers) > 1 || (len(headers) > 0 || token != "") && (err != nil || query.Has("access_token")) {
		return "", &malformedCredentials
	}
	switch { // no token, one that is too long, one of the site, and one of ours
	case !isBearer && (token == "" || !g.options.HostTokens):
		at := slices.IndexFunc(keyHeaders, func(name string) bool { return r.Header[name] != nil })
		if at < 0 || !g.options.HostTokens {
			return "", &g.missing
		}
		misplaced := g.invalid
		misplaced.rule, misplaced.description = "G22", "A key in the header "+keyHeaders[at]+
			" does not count here: send it in the header Authorization, after the word Bearer"
		return "", &misplaced
	case len(token) > maxHostTokenLength:
		return "", &g.invalid
	case g.options.HostTokens && !oauth.IsOwnToken(token):
		if strings.ContainsFunc(token, isUnprintable) {
			return "", &g.invalid
		}
	case !isBearer, len(token) > maxTokenLength, !isToken68(token):
		return "", &g.invalid
	}
	return token, nil
}

// keyHeaders are those in which clients of sites send keys.
var keyHeaders = []string{"X-Api-Key", "Api-Key", "Apikey", "X-Auth-Token", "X-Access-Token", "Authorization"}

const token68 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/"

// isToken68 reports whether the token has the grammar of RFC 6750 §2.1.
func isToken68(token string) bool {
	body := strings.TrimRight(token, "=")
	return body != "" && strings.Trim(body, token68) == ""
}

// refusal is a failed check of a request. Its texts are constants without characters that a
// quoted-string must escape.
type refusal struct {
	status            int
	rule              string
	code, description string
	scope             oauth.Scopes
}

var (
	malformedCredentials = refusal{
		status:      http.StatusBadRequest,
		rule:        "G5",
		code:        oauth.InvalidRequest.Code(),
		description: "Present exactly one bearer token, in the Authorization header",
	}
	// missingToken has no error code (RFC 6750 §3.1).
	missingToken = refusal{status: http.StatusUnauthorized}
	// invalidToken does not reveal why a token is invalid.
	invalidToken = refusal{
		status:      http.StatusUnauthorized,
		rule:        "G6",
		code:        oauth.InvalidToken.Code(),
		description: "The access token is invalid or has expired",
	}
	insufficientScope = refusal{
		status:      http.StatusForbidden,
		rule:        "G10",
		code:        oauth.InsufficientScope.Code(),
		description: "The access token lacks a scope that this operation needs",
	}
	changedTool = refusal{
		status:      http.StatusForbidden,
		rule:        "G23",
		code:        oauth.InsufficientScope.Code(),
		description: "The tool is new or has changed since the person approved this client",
	}
)

// with returns a refusal that names the scopes which a client should request.
func (r refusal) with(scope oauth.Scopes) refusal {
	r.scope = scope
	return r
}

// refuse answers a refused request with a challenge.
func (g *Guard) refuse(w http.ResponseWriter, r refusal) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("WWW-Authenticate", g.challenge(r))
	if r.code == "" {
		w.WriteHeader(r.status)
		return
	}
	stream.WriteError(w, r.status, r.code, r.description)
}

// challenge returns the WWW-Authenticate header, with its parameters in a fixed order.
func (g *Guard) challenge(r refusal) string {
	params := []string{`resource_metadata="` + g.metadataURL + `"`}
	if r.code != "" {
		params = append(params, `error="`+r.code+`"`, `error_description="`+r.description+`"`)
	}
	// The host may have configured invalid scopes.
	if _, err := oauth.ParseScopes(r.scope.String()); err == nil && !r.scope.Empty() {
		params = append(params, `scope="`+r.scope.String()+`"`)
	}
	return "Bearer " + strings.Join(params, ", ")
}

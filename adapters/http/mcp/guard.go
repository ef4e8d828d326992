package mcp

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/pasteport/pasteport/domain/oauth"
)

const maxTokenLength = 512

// guard lets a request pass that presents a valid access token of this resource, before its body is read (G3-G9, G13).
func (s *Server) guard(next http.Handler) http.Handler {
	authenticated := authenticatedBySDK(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defaults := s.options.Scopes.Defaults()
		token, refused := bearer(r, defaults)
		if refused != nil {
			s.challenge.refuse(w, *refused)
			return
		}
		caller, err := s.authenticate(r.Context(), token)
		switch {
		case err == nil:
			ctx := context.WithValue(r.Context(), identityKey{}, &identity{token, caller})
			authenticated.ServeHTTP(w, r.WithContext(ctx))
		case isInvalidToken(err):
			s.options.Logger.InfoContext(r.Context(), "refused a bearer token", "reason", err)
			s.challenge.refuse(w, invalidToken(defaults))
		case r.Context().Err() != nil: // nobody is waiting any more
		default:
			s.options.Logger.ErrorContext(r.Context(), "cannot check a bearer token", "error", err)
			unavailable(w, "The access token cannot be checked just now")
		}
	})
}

// authenticate turns a panic into an outage (G11).
func (s *Server) authenticate(ctx context.Context, token string) (caller oauth.Caller, err error) {
	defer func() {
		if recover() != nil { // its value may hold the token
			err = fmt.Errorf("panic while checking a bearer token: %s", debug.Stack())
		}
	}()
	return s.options.Authorization.Authenticate(ctx, token, s.options.Resource)
}

// bearer reads the one bearer token of the Authorization header (G3-G6).
func bearer(r *http.Request, defaults oauth.Scopes) (string, *refusal) {
	missing, invalid := missingToken(defaults), invalidToken(defaults)
	headers := r.Header.Values("Authorization")
	if len(headers) == 0 {
		return "", &missing
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if len(headers) > 1 || err != nil || query.Has("access_token") {
		return "", &malformedCredentials
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	token = strings.TrimLeft(token, " ")
	switch {
	case !strings.EqualFold(scheme, "Bearer"), token == "":
		return "", &missing
	case len(token) > maxTokenLength, !isToken68(token):
		return "", &invalid
	}
	return token, nil
}

// isToken68 checks the grammar of RFC 6750 §2.1.
func isToken68(token string) bool {
	body := strings.TrimRight(token, "=")
	return body != "" && !strings.ContainsFunc(body, func(c rune) bool {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		return !letter && !strings.ContainsRune("-._~+/", c)
	})
}

func isInvalidToken(err error) bool {
	kind, ok := oauth.KindOf(err)
	return ok && kind == oauth.InvalidToken
}

// authenticatedBySDK hands the identity to the SDK, whose context key only its own middleware can set, and then removes the
// token from the headers (G14). The SDK must not judge the expiry: it does not know our clock.
func authenticatedBySDK(next http.Handler) http.Handler {
	known := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		return tokenInfo(identityOf(ctx).caller), nil
	}
	cleaned := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth.TokenInfoFromContext(r.Context()).Expiration = identityOf(r.Context()).caller.ExpiresAt
		r.Header.Del("Authorization")
		next.ServeHTTP(w, r)
	})
	return auth.RequireBearerToken(known, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(cleaned)
}

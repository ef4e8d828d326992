package mcp

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

const maxTokenLength = 512

// protect is the way of every request, before its body is read past the gate and the guard (G13). The steps stand one behind the
// other and not one in another, because whatever is on the stack while a stream idles is memory.
func (s *Server) protect(next route) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !s.gate.passes(c.Response(), c.Request()) {
			return nil
		}
		who := s.guard(c.Response(), c.Request())
		if who == nil {
			return nil
		}
		out, r := s.streams.open(c.Response(), c.Request(), who)
		defer out.finish()
		m, admitted := s.admit(out, r)
		if !admitted {
			return nil
		}
		out.begin(m.listen || r.Method == http.MethodGet)
		next(out, r, m)
		s.answerCut(out)
		return nil
	}
}

// guard returns who presents a valid access token of this resource, and turns everybody else away (G3-G9).
func (s *Server) guard(w http.ResponseWriter, r *http.Request) *identity {
	token, refused := s.bearer(r)
	if refused != nil {
		noteRefusal(r.Context(), *refused)
		s.challenge.refuse(w, *refused)
		return nil
	}
	who, err := s.authenticate(r.Context(), token)
	if err != nil && !isInvalidToken(err) && r.Context().Err() != nil { // nobody is waiting any more
		return nil
	}
	trace.From(r.Context()).Reach(step(r))
	switch {
	case err == nil:
		r.Header.Del("Authorization") // G14
		return who
	case isInvalidToken(err):
		s.options.Logger.InfoContext(r.Context(), "refused a bearer token", "reason", err)
		trace.From(r.Context()).Refuse(err)
		s.challenge.refuse(w, s.invalid)
	default:
		s.options.Logger.ErrorContext(r.Context(), "cannot check a bearer token", "error", err)
		trace.From(r.Context()).Refuse(err)
		unavailable(w, "The access token cannot be checked just now")
	}
	return nil
}

// step is what a request is, once it bears a token.
func step(r *http.Request) trace.Kind {
	if r.Method == http.MethodGet {
		return trace.Stream
	}
	return trace.Call
}

// noteRefusal tells the trace; a request without a token is the first step of a connection, and nothing is wrong with it (G3).
func noteRefusal(ctx context.Context, r refusal) {
	walk := trace.From(ctx)
	if r.code == "" {
		walk.Reach(trace.Challenge)
		return
	}
	walk.RefuseAt(trace.Call, oauth.Refuse(oauth.InvalidToken, r.rule, r.description))
}

// authenticate turns a panic into an outage (G11).
func (s *Server) authenticate(ctx context.Context, token string) (who *identity, err error) {
	defer func() {
		if recover() != nil { // its value may hold the token
			err = fmt.Errorf("panic while checking a bearer token: %s", debug.Stack())
		}
	}()
	var caller oauth.Caller
	var host oauth.HostToken
	if s.options.HostTokens != nil {
		caller, host, err = s.options.HostTokens.AuthenticateWithHostToken(ctx, token, s.options.Resource)
	} else {
		caller, err = s.options.Authorization.Authenticate(ctx, token, s.options.Resource)
	}
	if err != nil {
		return nil, err
	}
	return s.identify(caller, token, host), nil
}

// bearer reads the one bearer token of the Authorization header (G3-G6).
func (s *Server) bearer(r *http.Request) (string, *refusal) {
	headers := r.Header.Values("Authorization")
	if len(headers) == 0 {
		return "", &s.missing
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if len(headers) > 1 || err != nil || query.Has("access_token") {
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

package site

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
)

// Tokens is an in-memory set of token digests.
type Tokens struct {
	mu    sync.RWMutex // a guard with revocation would need it
	known map[[sha256.Size]byte]bool
}

// Known returns a set of fixed tokens, for servers that issue none.
func Known(given ...string) *Tokens {
	tokens := new(Tokens)
	for _, token := range given {
		tokens.Add(sha256.Sum256([]byte(token)))
	}
	return tokens
}

// Add adds a token.
func (t *Tokens) Add(digest [sha256.Size]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[[sha256.Size]byte]bool{}
	}
	t.known[digest] = true
}

// Knows reports whether the set holds a token.
func (t *Tokens) Knows(token string) bool {
	digest := sha256.Sum256([]byte(token))
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.known[digest]
}

// Guard is the minimal guard: it looks up the token and checks that the body is JSON.
func Guard(known *Tokens) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r := c.Request()
			token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if !bearer || !known.Knows(token) {
				return echo.ErrUnauthorized
			}
			body, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, 1<<20))
			if err != nil || !json.Valid(body) {
				return echo.ErrBadRequest
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			return next(c)
		}
	}
}

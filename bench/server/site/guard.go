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

// Tokens are known by their digests, in memory.
type Tokens struct {
	mu    sync.RWMutex // somebody may revoke
	known map[[sha256.Size]byte]bool
}

// Known are those that are given, where nobody gives out any.
func Known(given ...string) *Tokens {
	tokens := new(Tokens)
	for _, token := range given {
		tokens.Add(sha256.Sum256([]byte(token)))
	}
	return tokens
}

// Add is told of a new token.
func (t *Tokens) Add(digest [sha256.Size]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[[sha256.Size]byte]bool{}
	}
	t.known[digest] = true
}

// Knows reports that a token is one of them.
func (t *Tokens) Knows(token string) bool {
	digest := sha256.Sum256([]byte(token))
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.known[digest]
}

// Guard is the least that one can do: it looks the token up, and whether the body is JSON.
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

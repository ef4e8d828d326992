// Command byhand is a minimal code flow and guard on Echo and SQLite. It writes the same rows as
// Pasteport's store with shared transactions, without sealing, client binding, trace or metadata
// documents.
package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"html"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/bench/server"
	"github.com/pasteport/pasteport/bench/server/raw"
	"github.com/pasteport/pasteport/bench/server/site"
)

func main() { server.Main(map[string]server.Open{"echo-flow": open}) }

func open(order server.Order, _ string) (server.Site, error) {
	db, err := raw.Open(filepath.Join(order.Dir, "oauth.db"))
	if err != nil {
		return server.Site{}, err
	}
	s := &issuer{
		db:     db,
		writes: newWriter(db),
		known:  map[raw.Digest]holder{},
		tokens: new(site.Tokens),
	}
	e := site.NewEcho()
	site.Furnish(e)
	e.GET("/oauth/authorize", s.ask)
	e.POST("/oauth/authorize", s.approve)
	e.POST("/oauth/token", s.token)
	e.POST("/mcp", echo.WrapHandler(http.HandlerFunc(server.Answer)), site.Guard(s.tokens))
	return server.Site{Handler: e, Close: db.Close}, nil
}

// issuer keeps codes and tokens in memory, so that it never reads the database.
type issuer struct {
	db     *raw.Database
	writes *writer
	mu     sync.Mutex
	known  map[raw.Digest]holder
	tokens *site.Tokens
}

type holder struct{ grant, challenge string }

// The page has the same length as Pasteport's.
var beforeAction,
	behindAction = []byte("<!doctype html><title>Connect an app</title><!--" + strings.Repeat("x", 13_000) +
	`--><form method="post" action="`),
	[]byte(`"><input type="password" name="bearer_token"><button name="decision" ` +
		`value="approve">Approve</button></form>`)

func (s *issuer) ask(c echo.Context) error {
	if c.QueryParam("client_id") == "" {
		return echo.ErrBadRequest
	}
	action := []byte(html.EscapeString(c.Request().URL.RequestURI()))
	return c.HTMLBlob(http.StatusOK, bytes.Join([][]byte{beforeAction, action, behindAction}, nil))
}

func (s *issuer) approve(c echo.Context) error {
	if !server.KnowsToken(c.Request()) {
		return echo.ErrForbidden
	}
	id, query := raw.NewID(), c.QueryParams()
	code, digest := draw()
	if err := s.writes.do(func() error { return s.db.Approve(id, digest) }); err != nil {
		return err
	}
	s.remember(digest, holder{id, query.Get("code_challenge")})
	back := url.Values{"code": {code}, "state": {query.Get("state")}}
	return c.Redirect(http.StatusSeeOther, query.Get("redirect_uri")+"?"+back.Encode())
}

func (s *issuer) token(c echo.Context) error {
	presented := c.FormValue("code") + c.FormValue("refresh_token") // only one of them is set
	spent := sha256.Sum256([]byte(presented))
	who, found := s.spend(spent)
	if !found || who.challenge != "" && who.challenge != challengeOf(c.FormValue("code_verifier")) {
		return echo.ErrBadRequest
	}
	access, accessDigest := draw()
	refresh, refreshDigest := draw()
	err := s.writes.do(func() error {
		if who.challenge != "" {
			return s.db.Redeem(who.grant, refreshDigest)
		}
		return s.db.Rotate(who.grant, refreshDigest)
	})
	if err != nil {
		return err
	}
	s.tokens.Add(accessDigest)
	s.remember(refreshDigest, holder{grant: who.grant})
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, tokens{access, refresh, "Bearer", 3600, "mcp offline_access"})
}

type tokens struct {
	Access   string `json:"access_token"`
	Refresh  string `json:"refresh_token"`
	Kind     string `json:"token_type"`
	Lifetime int    `json:"expires_in"`
	Scope    string `json:"scope"`
}

func (s *issuer) remember(secret raw.Digest, of holder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[secret] = of
}

func (s *issuer) spend(secret raw.Digest) (holder, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of, found := s.known[secret]
	delete(s.known, secret)
	return of, found
}

func draw() (secret string, digest raw.Digest) {
	var chance raw.Digest
	_, _ = rand.Read(chance[:]) // never fails
	secret = base64.RawURLEncoding.EncodeToString(chance[:])
	return secret, sha256.Sum256([]byte(secret))
}

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

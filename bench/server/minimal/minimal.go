// Package minimal is a minimal code flow and guard on Echo. It has no sealing, client binding,
// trace or metadata documents.
package minimal

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"html"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/bench/server"
	"github.com/pasteport/pasteport/bench/server/raw"
	"github.com/pasteport/pasteport/bench/server/site"
)

// Rows are codes and grants in a database, which decides which codes and refresh tokens are spent.
type Rows interface {
	Approve(id string, code raw.Digest, challenge string) error
	Redeem(id string, code raw.Digest, challenge string, refresh raw.Digest) (redeemed bool, err error)
	Rotate(id string, presented, next raw.Digest) (rotated bool, err error)
	Close() error
}

// New returns a server that issues tokens for rows.
func New(rows Rows) server.Site {
	s := &issuer{Rows: rows, tokens: new(site.Tokens)}
	e := site.NewEcho()
	site.Furnish(e)
	e.GET("/oauth/authorize", s.ask)
	e.POST("/oauth/authorize", s.approve)
	e.POST("/oauth/token", s.token)
	e.POST("/mcp", echo.WrapHandler(http.HandlerFunc(server.Answer)), site.Guard(s.tokens))
	return server.Site{Handler: e, Close: rows.Close}
}

// issuer keeps access tokens in memory for the guard, and never reads the database.
type issuer struct {
	Rows
	tokens *site.Tokens
}

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
	code, digest := draw(id)
	if err := s.Approve(id, digest, query.Get("code_challenge")); err != nil {
		return err
	}
	back := url.Values{"code": {code}, "state": {query.Get("state")}}
	return c.Redirect(http.StatusSeeOther, query.Get("redirect_uri")+"?"+back.Encode())
}

func (s *issuer) token(c echo.Context) error {
	code := c.FormValue("code")
	presented := code + c.FormValue("refresh_token") // only one of them is set
	if len(presented) < raw.IDLength {
		return echo.ErrBadRequest
	}
	id, digest := presented[:raw.IDLength], sha256.Sum256([]byte(presented))
	access, accessDigest := draw(id)
	refresh, refreshDigest := draw(id)
	var valid bool
	var err error
	if code != "" {
		valid, err = s.Redeem(id, digest, challengeOf(c.FormValue("code_verifier")), refreshDigest)
	} else {
		valid, err = s.Rotate(id, digest, refreshDigest)
	}
	if err != nil {
		return err
	}
	if !valid {
		return echo.ErrBadRequest
	}
	s.tokens.Add(accessDigest)
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

// draw returns a secret of a grant. It begins with the id, by which the database finds the row.
func draw(id string) (secret string, digest raw.Digest) {
	var chance raw.Digest
	_, _ = rand.Read(chance[:]) // never fails
	secret = id + base64.RawURLEncoding.EncodeToString(chance[:])
	return secret, sha256.Sum256([]byte(secret))
}

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

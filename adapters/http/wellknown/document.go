// Package wellknown serves prebuilt discovery documents: the same bytes to everyone, cacheable and readable from every origin.
package wellknown

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// Document is one discovery document, encoded once (F1, F6).
type Document struct {
	body []byte
	etag string
}

// New encodes the members.
func New(members any) (*Document, error) {
	body, err := json.Marshal(members)
	if err != nil {
		return nil, fmt.Errorf("encoding a discovery document: %w", err)
	}
	sum := sha256.Sum256(body)
	return &Document{body: body, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}, nil
}

// Mount serves the document at path.
func (d *Document) Mount(site *echo.Echo, path string) {
	site.Match([]string{http.MethodGet, http.MethodHead}, path, d.serve)
	site.OPTIONS(path, d.preflight)
}

func (d *Document) serve(c echo.Context) error {
	header := c.Response().Header()
	header.Set(echo.HeaderAccessControlAllowOrigin, "*")
	header.Set(echo.HeaderCacheControl, "public, max-age=300")
	header.Set("ETag", d.etag)
	if strings.Contains(c.Request().Header.Get("If-None-Match"), d.etag) {
		return c.NoContent(http.StatusNotModified)
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, d.body)
}

func (d *Document) preflight(c echo.Context) error {
	header := c.Response().Header()
	header.Set(echo.HeaderAccessControlAllowOrigin, "*")
	header.Set(echo.HeaderAccessControlAllowMethods, "GET, HEAD, OPTIONS")
	header.Set(echo.HeaderAccessControlAllowHeaders, "MCP-Protocol-Version")
	header.Set(echo.HeaderAccessControlMaxAge, "86400")
	return c.NoContent(http.StatusNoContent)
}

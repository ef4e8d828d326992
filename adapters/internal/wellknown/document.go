// Package wellknown serves discovery documents. A Document is encoded once; its responses can be
// cached and are readable from every origin.
package wellknown

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/domain/attempt"
)

// Document is one discovery document, encoded once.
type Document struct {
	step attempt.Kind
	note error // of each step; nil for none
	body []byte
	etag string
}

// New encodes the members, a struct of strings, booleans and lists of strings. A request for the
// document records step in the trace.
func New(step attempt.Kind, members any) *Document {
	body, _ := json.Marshal(members)
	sum := sha256.Sum256(body)
	return &Document{step: step, body: body, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
}

// Note makes the trace show the rule of a refusal at each request, for something that the document
// does not offer.
func (d *Document) Note(refusal error) { d.note = refusal }

// Mount serves the document at path.
func (d *Document) Mount(site *echo.Echo, path string, middleware ...echo.MiddlewareFunc) {
	site.Match([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, path, echo.WrapHandler(d), middleware...)
}

// anyHeader allows every request header, because the documents do not depend on any. The MCP
// Inspector sends Content-Type with a GET. The star does not cover Authorization.
const anyHeader = "Authorization, Content-Type, Accept, MCP-Protocol-Version, *"

// ServeHTTP publishes the document to every origin; conditional requests get 304.
func (d *Document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodOptions {
		AnswerPreflight(w, "GET, HEAD", anyHeader)
		return
	}
	header := w.Header()
	header.Set("Access-Control-Allow-Origin", "*")
	recorder := attempt.From(r.Context())
	recorder.Record(d.step)
	if d.note != nil {
		recorder.Explain(d.note)
	}
	header.Set("Cache-Control", "public, max-age=300")
	header.Set("Content-Type", "application/json")
	header.Set("ETag", d.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(d.body))
}

// AnswerPreflight lets pages of every origin send the methods and headers.
func AnswerPreflight(w http.ResponseWriter, methods, headers string) {
	header := w.Header()
	header.Set("Access-Control-Allow-Origin", "*")
	header.Set("Access-Control-Allow-Methods", methods)
	header.Set("Access-Control-Allow-Headers", headers)
	header.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
}

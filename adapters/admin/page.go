package admin

import (
	"crypto/sha256"
	_ "embed" // the style
	"encoding/base64"
	"net/http"

	"github.com/a-h/templ"

	"github.com/pasteport/pasteport/adapters/internal/look"
)

//go:embed admin.css
var ownStyle string

var style = look.Style + ownStyle

// stylePolicy is a Content-Security-Policy that allows only the style of the page and its forms.
var stylePolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

func write(w http.ResponseWriter, r *http.Request, status int, page templ.Component) {
	w.Header().Set("Content-Security-Policy", stylePolicy)
	templ.Handler(page, templ.WithStatus(status)).ServeHTTP(w, r) // renders the whole page before it writes
}

func storeFails(w http.ResponseWriter) {
	http.Error(w, "the store cannot be read; see /readyz", http.StatusServiceUnavailable)
}

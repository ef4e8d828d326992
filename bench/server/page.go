package server

import (
	"fmt"
	"html"
	"net/http"

	"github.com/pasteport/pasteport/bench/load"
)

// form is the consent page of peers without one. Its action repeats the query of the request. It is
// not a template, because executing one makes the linker keep every method of every type, which
// would make the peers' programs larger.
const form = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Connect an app</title></head>
<body><h1>%s asks to work in your name</h1>
<form method="post" action="%s"><input type="password" name="bearer_token">
<button name="decision" value="approve">Approve</button></form>
</body></html>
`

// ShowForm writes the consent page.
func ShowForm(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprintf(w, form, html.EscapeString(r.URL.Query().Get("client_id")),
		html.EscapeString(r.URL.RequestURI()))
}

// KnowsToken reports whether the form approves and holds the right token.
func KnowsToken(r *http.Request) bool {
	return r.PostFormValue("decision") == "approve" && load.IsHostToken(r.PostFormValue("bearer_token"))
}

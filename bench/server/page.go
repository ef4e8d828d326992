package server

import (
	"html/template"
	"net/http"

	"github.com/pasteport/pasteport/bench/load"
)

// form is the consent page of those that bring none. What was asked for travels in its action.
var form = template.Must(template.New("form").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Connect an app</title></head>
<body><h1>{{.Client}} asks to work in your name</h1>
<form method="post" action="{{.Action}}"><input type="password" name="bearer_token"><button name="decision" value="approve">Approve</button></form>
</body></html>
`))

// ShowForm asks what a consent page asks.
func ShowForm(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = form.Execute(w, struct{ Client, Action string }{r.URL.Query().Get("client_id"), r.URL.RequestURI()})
}

// KnowsToken checks what the form brings.
func KnowsToken(r *http.Request) bool {
	return r.PostFormValue("decision") == "approve" && r.PostFormValue("bearer_token") == load.HostToken
}

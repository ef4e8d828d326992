package pages

import (
	"crypto/rand"
	"maps"
	"net/http"
	"net/url"
	"slices"
)

// mostTools is how many tools of each kind the page shows.
const mostTools = 50

// ToolReview is the page that tells a person how the tools of a server differ from those that they
// approved for the app before. The page escapes and shortens texts from the server.
type ToolReview struct {
	ClientName         string // name that the client claims
	RedirectHost       string // as in Consent
	Server             Server
	New, Changed, Gone []Tool

	Action   string     // URL that the form is posted to
	Form     url.Values // hidden fields
	Decision string     // the value of the button that approves
	Manage   string     // URL of the connections page
}

// Tool is a tool of a server, in the words of that server.
type Tool struct{ Name, Description string }

type field struct{ name, value string }

// hiddenFields returns the values of a form, sorted by name.
func hiddenFields(form url.Values) (fields []field) {
	for _, name := range slices.Sorted(maps.Keys(form)) {
		for _, value := range form[name] {
			fields = append(fields, field{name, value})
		}
	}
	return fields
}

// WriteToolReview answers with the page about changed tools. Nothing is written if it cannot be
// rendered.
func (e Edition) WriteToolReview(w http.ResponseWriter, r ToolReview) error {
	s := e.sheet(rand.Text())
	return s.write(w, http.StatusOK, s.toolReview(r))
}

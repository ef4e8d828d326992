package pages

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
)

// ToolReview is the page that tells a person how the tools of a server differ from those that they
// approved for the app before. The page escapes and shortens texts from the server.
type ToolReview struct {
	ClientName         string // name that the client claims
	RedirectHost       string // as in Consent
	Server             Server
	New, Changed, Gone []string // names of tools, of which the server has more than it shows

	Action   string     // URL that the form is posted to
	Form     url.Values // hidden fields
	Decision string     // the value of the button that approves
	Manage   string     // URL of the connections page
}

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
	s := e.sheet()
	return s.write(w, http.StatusOK, s.toolReview(r))
}

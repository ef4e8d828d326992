package pages

import (
	"crypto/rand"
	_ "embed" // the script
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// proofScript computes the proof of work. The proof page works without it.
//
//go:embed proof.js
var proofScript string

// Proof is the page on which a browser computes a proof of work before a pasted token is checked.
type Proof struct {
	Action     string     // URL that the form is posted to
	Form       url.Values // hidden fields
	Challenge  string
	Bits       int           // leading zero bits that the proof must have
	Iterations int           // rounds of PBKDF2 for each try
	Wait       time.Duration // for browsers without script
}

// Seconds returns the wait in whole seconds, rounded up.
func (p Proof) Seconds() int { return int((p.Wait + time.Second - 1) / time.Second) }

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

// WriteProof answers with the proof page. Nothing is written if it cannot be rendered.
func (e Edition) WriteProof(w http.ResponseWriter, status int, p Proof) error {
	s := e.sheet(rand.Text())
	s.scripts = true
	return s.write(w, status, s.proof(p))
}

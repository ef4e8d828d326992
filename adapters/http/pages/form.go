package pages

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"strings"
	"sync"

	"github.com/a-h/templ"
	"golang.org/x/text/language"
)

// form is a rendered consent page with gaps for the values of a request. It is cached for each kind
// of page, because rendering takes a fifth of the time of a whole code flow. Each piece but the
// first begins with the number of the gap before it.
type form []string

// kind is the key of a cached form: the language, and the page without the values in its gaps.
type kind struct {
	language language.Tag
	page     string
}

// keptForms bounds the cache, because requests choose the warnings and scopes.
const keptForms = 64

// The numbers of the gaps, in the order of the values of fill.
const nonceGap, nameGap, clientGap, redirectGap, ticketGap = "0", "1", "2", "3", "4"

// formFor does not keep a page with values that a person has entered.
func (e Edition) formFor(c Consent) (form, error) {
	if len(c.Fields) > 0 && c.Problem != "" {
		return e.drawForm(c, rand.Text())
	}
	page, _ := json.Marshal(c.withGaps("")) // it has texts and flags only
	kind := kind{e.language, string(page)}
	if drawn, kept := e.pages.forms.Get(kind); kept {
		return drawn, nil
	}
	drawn, err := e.drawForm(c, rand.Text())
	if err != nil {
		return nil, err
	}
	e.pages.forms.Add(kind, drawn)
	return drawn, nil
}

// drawForm renders the form and splits it at mark, which must not occur in the texts of the site.
// No value of a request is rendered, so that a request cannot add a gap.
func (e Edition) drawForm(c Consent, mark string) (form, error) {
	page, err := draw(e.sheet(mark + nonceGap).consent(c.withGaps(mark)))
	return strings.Split(string(page), mark), err
}

// buffers of 16 KiB are reused after their pages are sent.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// fill writes the form with the escaped values in its gaps, which are in text, titles and quoted
// attributes.
func (f form) fill(page *bytes.Buffer, values ...string) {
	for i, value := range values {
		values[i] = templ.EscapeString(value)
	}
	page.WriteString(f[0])
	for _, piece := range f[1:] {
		page.WriteString(values[piece[0]-'0'])
		page.WriteString(piece[1:])
	}
}

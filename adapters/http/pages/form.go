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

// form is a consent page with gaps for what each request brings along. The templates draw one for each kind of page, because they
// cost more than all the rest of a request. Each piece but the first begins with the number of the gap in front of it.
type form []string

// kind is what all pages with the same form have in common: the language, and everything but the contents of the gaps.
type kind struct {
	language language.Tag
	page     string
}

// keptForms bounds what is kept for strangers, who choose among warnings and scopes.
const keptForms = 64

// The gaps of a form are numbered in the order in which fill takes their contents.
const nonceGap, nameGap, clientGap, redirectGap, ticketGap = "0", "1", "2", "3", "4"

func (e Edition) formFor(c Consent) (form, error) {
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

// drawForm needs a mark that is nowhere in the site's own texts. Nothing that a stranger sent is drawn, so nobody can bring a gap along.
func (e Edition) drawForm(c Consent, mark string) (form, error) {
	page, err := draw(e.sheet(mark + nonceGap).consent(c.withGaps(mark)))
	return strings.Split(string(page), mark), err
}

// papers are used again once their pages are sent.
var papers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// fill puts the parts into their gaps, which are between tags, in titles and in quoted attributes.
func (f form) fill(paper *bytes.Buffer, parts ...string) {
	for i, part := range parts {
		parts[i] = templ.EscapeString(part)
	}
	paper.WriteString(f[0])
	for _, piece := range f[1:] {
		paper.WriteString(parts[piece[0]-'0'])
		paper.WriteString(piece[1:])
	}
}

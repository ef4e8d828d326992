package matrix

import (
	"embed"
	"fmt"
	"path"
	"strings"
	"text/template"
)

//go:embed *.tmpl
var layouts embed.FS

var pages = template.Must(template.ParseFS(layouts, "*.tmpl"))

// Page is a generated page. Path is relative to the root of the module.
type Page struct{ Path, Text string }

// Pages returns the pages that are committed.
func (m *Matrix) Pages() ([]Page, error) {
	rules, err := render("rules.tmpl", m.subjects())
	if err != nil {
		return nil, err
	}
	capabilities, err := render("README.tmpl", m.capabilities())
	if err != nil {
		return nil, err
	}
	return []Page{{"docs/rules.md", rules}, {"features/README.md", capabilities}}, nil
}

// Proofs returns the page of every rule with the specs that prove it. It is too large to be
// committed.
func (m *Matrix) Proofs() (Page, error) {
	proved, unproved := m.sections()
	text, err := render("proofs.tmpl", map[string]any{"Sections": proved, "Unproved": unproved})
	return Page{"build/rules-and-specs.md", text}, err
}

func render(layout string, content any) (string, error) {
	var text strings.Builder
	if err := pages.ExecuteTemplate(&text, layout, content); err != nil {
		return "", fmt.Errorf("rendering %s: %w", layout, err)
	}
	return text.String(), nil
}

// subject is a letter with its rules, as docs/rules.md lists them.
type subject struct {
	Letter, Title string
	Rules         []Rule
}

func (m *Matrix) subjects() (found []subject) {
	for _, rule := range m.Rules {
		if rule.heading {
			found = append(found, subject{Letter: rule.Number, Title: rule.Sentence})
			continue
		}
		last := &found[len(found)-1]
		last.Rules = append(last.Rules, rule)
	}
	return found
}

// section is a subject with the specs that prove each rule.
type section struct {
	Letter, Title string
	Rows          []row
}

type row struct {
	Rule
	Proofs    []string // sentence, number of specs and file, in Markdown
	Revisions string
}

// sections returns the proved rules by subject, and the rules that have a reason instead of a spec.
func (m *Matrix) sections() (proved []section, unproved []Rule) {
	for _, rule := range m.Rules {
		switch {
		case rule.heading:
			proved = append(proved, section{Letter: rule.Number, Title: rule.Sentence})
		case rule.Reason != "":
			unproved = append(unproved, rule)
		default:
			last := &proved[len(proved)-1]
			last.Rows = append(last.Rows, m.row(rule))
		}
	}
	return proved, unproved
}

// row counts the specs of a file whose sentences are equal up to the label as one proof.
func (m *Matrix) row(rule Rule) row {
	type proof struct{ sentence, file string }
	var order []proof
	var labelled []Spec
	counts := map[proof]int{}
	for _, spec := range m.Specs {
		sentence, found := spec.about(rule.Number)
		if !found {
			continue
		}
		p := proof{sentence, spec.File}
		if counts[p]++; counts[p] == 1 {
			order = append(order, p)
		}
		labelled = append(labelled, spec)
	}
	r := row{Rule: rule, Revisions: list(labelled, Spec.revisions)}
	if r.Revisions == "" {
		r.Revisions = "any"
	}
	for _, p := range order {
		r.Proofs = append(r.Proofs, markdown(p.sentence, p.file, counts[p]))
	}
	return r
}

var escapes = strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`)

func markdown(sentence, file string, count int) string {
	text := escapes.Replace(sentence)
	if count > 1 {
		text += fmt.Sprintf(" (%d)", count)
	}
	return fmt.Sprintf("%s · [%s](../%s)", text, path.Base(file), file)
}

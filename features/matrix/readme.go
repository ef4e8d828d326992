package matrix

import (
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"text/template"
)

//go:embed README.tmpl
var layout string

var page = template.Must(template.New("README.md").Parse(layout))

// section is a table of the page.
type section struct {
	Letter, Title string
	Rows          []row
}

type row struct {
	Rule
	Proofs    []string // sentence, number of specs and file, in Markdown
	Revisions string
}

// README is the text of features/README.md.
func (m *Matrix) README() (string, error) {
	var sections []section
	var unproved []Rule
	for _, rule := range m.Rules {
		switch {
		case rule.heading:
			sections = append(sections, section{Letter: rule.Number, Title: rule.Sentence})
		case rule.Reason != "":
			unproved = append(unproved, rule)
		default:
			last := &sections[len(sections)-1]
			last.Rows = append(last.Rows, m.row(rule))
		}
	}
	var text strings.Builder
	if err := page.Execute(&text, map[string]any{"Sections": sections, "Unproved": unproved}); err != nil {
		return "", fmt.Errorf("writing the matrix: %w", err)
	}
	return text.String(), nil
}

// row counts together the specs whose sentences agree up to the label.
func (m *Matrix) row(rule Rule) row {
	type proof struct{ sentence, file string }
	var order []proof
	var revisions []string
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
		revisions = append(revisions, spec.revisions()...)
	}
	slices.Sort(revisions)
	r := row{Rule: rule, Revisions: strings.Join(slices.Compact(revisions), "<br>")}
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
	link := "../" + file
	if inside, found := strings.CutPrefix(file, "features/"); found {
		link = inside
	}
	return fmt.Sprintf("%s · [%s](%s)", text, path.Base(file), link)
}

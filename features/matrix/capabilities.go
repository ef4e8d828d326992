package matrix

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// capability is a row of features/README.md: one file of specs with the names in its labels.
type capability struct {
	Name, File                  string
	Rules, Revisions, Standards string // comma-separated
}

var standard = regexp.MustCompile(`^(RFC \d+|OAuth 2\.1|CIMD)`)

// capabilities returns one capability for each file of specs in features/, sorted by file name.
func (m *Matrix) capabilities() (found []capability) {
	allRevisions := list(m.Specs, Spec.revisions)
	for _, specs := range m.files() {
		revisions := list(specs, Spec.revisions)
		if revisions == allRevisions && revisions != "" {
			revisions = "all"
		}
		found = append(found, capability{
			Name:      escapes.Replace(titles(specs)),
			File:      path.Base(specs[0].File),
			Rules:     list(specs, m.letters),
			Revisions: revisions,
			Standards: list(specs, Spec.standards),
		})
	}
	return found
}

// titles joins the texts of the outermost containers.
func titles(specs []Spec) string {
	var texts []string
	for _, spec := range specs {
		if text := strings.TrimSuffix(spec.Nodes[0].Text, ","); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}

// letters returns the letters of the rules in the labels of the spec.
func (m *Matrix) letters(spec Spec) (found []string) {
	labels := spec.Labels()
	for _, rule := range m.Rules {
		if slices.Contains(labels, rule.Number) {
			found = append(found, rule.section())
		}
	}
	return found
}

func (s Spec) standards() (found []string) {
	for _, label := range s.Labels() {
		if name := standard.FindString(label); name != "" {
			found = append(found, name)
		}
	}
	return found
}

// list joins the values of a property of all the specs, sorted and without duplicates.
func list(specs []Spec, property func(Spec) []string) string {
	var all []string
	for _, spec := range specs {
		all = append(all, property(spec)...)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// files returns the specs in features/ by file.
func (m *Matrix) files() (files [][]Spec) {
	for _, spec := range m.Specs {
		if path.Dir(spec.File) != "features" {
			continue
		}
		if last := len(files) - 1; last >= 0 && files[last][0].File == spec.File {
			files[last] = append(files[last], spec)
			continue
		}
		files = append(files, []Spec{spec})
	}
	return files
}

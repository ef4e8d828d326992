package matrix

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// capability is a file of specs in features/ with what its labels name.
type capability struct {
	Name, File                  string
	Rules, Revisions, Standards string // as the page shows them
}

var standard = regexp.MustCompile(`^(RFC \d+|OAuth 2\.1|CIMD)`)

// capabilities returns one for each file of specs in features/, in the order of their names.
func (m *Matrix) capabilities() (found []capability) {
	allRevisions := list(m.Specs, Spec.revisions)
	for _, specs := range m.files() {
		revisions := list(specs, Spec.revisions)
		if revisions == allRevisions && revisions != "" {
			revisions = "all"
		}
		found = append(found, capability{
			Name: escapes.Replace(describes(specs)), File: path.Base(specs[0].File),
			Rules: list(specs, m.letters), Revisions: revisions, Standards: list(specs, Spec.standards),
		})
	}
	return found
}

// describes returns the texts of the outermost containers.
func describes(specs []Spec) string {
	var texts []string
	for _, spec := range specs {
		if text := strings.TrimSuffix(spec.Nodes[0].Text, ","); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}

// letters returns the subjects of the rules that the spec is labelled with.
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

// list returns what the property has for any of the specs, sorted and each once.
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

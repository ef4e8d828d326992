// Package matrix finds out which spec proves which rule of the behaviour catalogue. Read reads the rules and, from the source of the specs,
// their labels; Problems reports where the two disagree, Pages renders the
// pages for the repository, and Proofs renders the page of every rule with its specs.
package matrix

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed rules.tsv
var catalogue string

// Matrix is the catalogue beside the specs that prove it.
type Matrix struct {
	Rules []Rule
	Specs []Spec
}

// Read reads the catalogue and every spec of the module in the folder.
func Read(root string) (*Matrix, error) {
	rules, err := readRules(catalogue)
	if err != nil {
		return nil, err
	}
	specs, err := readSpecs(root)
	return &Matrix{rules, specs}, err
}

// Problems are what keeps the matrix from being true: rules without a spec, or with a spec and an excuse, and labels of no rule.
func (m *Matrix) Problems() (found []string) {
	proved, known, sections := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, spec := range m.Specs {
		for _, label := range spec.Labels() {
			proved[label] = true
		}
	}
	for _, rule := range m.Rules {
		known[rule.Number], sections[rule.section()] = true, true
		switch {
		case rule.heading:
		case !proved[rule.Number] && rule.Reason == "":
			found = append(found, fmt.Sprintf("%s has neither a spec nor a reason: %s", rule.Number, rule.Sentence))
		case proved[rule.Number] && rule.Reason != "":
			found = append(found, fmt.Sprintf("%s has a spec, so it needs no reason: %s", rule.Number, rule.Reason))
		}
	}
	for _, spec := range m.Specs {
		for _, label := range spec.Labels() {
			if isNumber(label) && sections[label[:1]] && !known[label] {
				found = append(found, fmt.Sprintf("%s: %q has the label %s, which is no rule", spec.File, spec.Sentence(), label))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// isNumber reports whether a label looks like the number of a rule, as D19 does.
func isNumber(label string) bool {
	return len(label) > 1 && 'A' <= label[0] && label[0] <= 'Z' && strings.Trim(label[1:], "0123456789") == ""
}

// Package matrix joins the rules of rules.tsv with the specs that have their numbers as labels.
// Read returns a Matrix of both, from the table and from the source of the specs; Matrix.Problems
// reports where they disagree, Matrix.Pages renders the pages of the repository, and Matrix.Proofs
// renders the page of every rule with its specs.
package matrix

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed rules.tsv
var rulesTable string

// Matrix is every rule and every spec of the module, and what the product refuses by number.
type Matrix struct {
	Rules     []Rule
	Specs     []Spec
	Citations []Citation
}

// Citation is the number of a rule in a string of a file that is not a test.
type Citation struct {
	File, Number string
}

// Read reads the rules, and every spec of the module whose root is given.
func Read(root string) (*Matrix, error) {
	rules, err := readRules(rulesTable)
	if err != nil {
		return nil, err
	}
	specs, citations, err := readSource(root)
	return &Matrix{rules, specs, citations}, err
}

// Problems returns the rules that have neither a spec nor a reason, those that have both, and the
// labels and citations that name no rule.
func (m *Matrix) Problems() (found []string) {
	proved, numbers := map[string]bool{}, map[string]bool{}
	for _, spec := range m.Specs {
		for _, label := range spec.Labels() {
			proved[label] = true
		}
	}
	for _, rule := range m.Rules {
		numbers[rule.Number] = true
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
			if isNumber(label) && !numbers[label] {
				found = append(found,
					fmt.Sprintf("%s: %q has the label %s, which is not a rule", spec.File, spec.Sentence(), label))
			}
		}
	}
	for _, cited := range m.Citations {
		if !numbers[cited.Number] {
			found = append(found, fmt.Sprintf("%s: %s is not a rule", cited.File, cited.Number))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// isNumber reports whether a label looks like the number of a rule, as D19 does.
func isNumber(label string) bool {
	return (len(label) == 2 || len(label) == 3) && 'A' <= label[0] && label[0] <= 'Z' &&
		strings.Trim(label[1:], "0123456789") == ""
}

package matrix

import (
	"regexp"
	"slices"
	"strings"
)

// Spec is one It or one Entry with the containers around it, outermost first.
type Spec struct {
	File  string // from the module's root
	Nodes []Node
}

// Node is a text of a spec's sentence with the labels that stand at it.
type Node struct {
	Text   string
	Labels []string
}

// Sentence is what a report says when the spec runs.
func (s Spec) Sentence() string { return s.upTo(len(s.Nodes)) }

func (s Spec) upTo(end int) string {
	var texts []string
	for _, node := range s.Nodes[:end] {
		if node.Text != "" {
			texts = append(texts, node.Text)
		}
	}
	return strings.Join(texts, " ")
}

// about is the sentence up to the label, because what follows it is only how the rule is proved.
func (s Spec) about(label string) (sentence string, found bool) {
	for end := len(s.Nodes); end > 0; end-- {
		if slices.Contains(s.Nodes[end-1].Labels, label) {
			return s.upTo(end), true
		}
	}
	return "", false
}

// Labels are those of the spec and of the containers around it.
func (s Spec) Labels() (all []string) {
	for _, node := range s.Nodes {
		all = append(all, node.Labels...)
	}
	return all
}

var revision = regexp.MustCompile(`^(?:MCP )?(\d{4}-\d\d-\d\d)$`)

// revisions are those of MCP that the spec is labelled with.
func (s Spec) revisions() (found []string) {
	for _, label := range s.Labels() {
		if match := revision.FindStringSubmatch(label); match != nil {
			found = append(found, match[1])
		}
	}
	return found
}

package matrix

import (
	"regexp"
	"slices"
	"strings"
)

// Spec is one It or Entry. Nodes are the containers around it, outermost first, and itself.
type Spec struct {
	File  string // path from the root of the module
	Nodes []Node
}

// Node is one part of the sentence of a spec, with its labels.
type Node struct {
	Text   string
	Labels []string
}

// Sentence is the full text of the spec, as Ginkgo reports it.
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

// about returns the sentence up to the node with the label; the nodes below it are details of the
// proof.
func (s Spec) about(label string) (sentence string, found bool) {
	for end := len(s.Nodes); end > 0; end-- {
		if slices.Contains(s.Nodes[end-1].Labels, label) {
			return s.upTo(end), true
		}
	}
	return "", false
}

// Labels returns the labels of the spec and of the containers around it.
func (s Spec) Labels() (all []string) {
	for _, node := range s.Nodes {
		all = append(all, node.Labels...)
	}
	return all
}

var revision = regexp.MustCompile(`^(?:MCP )?(\d{4}-\d\d-\d\d)$`)

// revisions returns the revisions of MCP in the labels of the spec.
func (s Spec) revisions() (found []string) {
	for _, label := range s.Labels() {
		if match := revision.FindStringSubmatch(label); match != nil {
			found = append(found, match[1])
		}
	}
	return found
}

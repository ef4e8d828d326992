package settings

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

const (
	secretLimit = 64 << 10
	hidden      = "[hidden]" // printed instead of a secret
)

// Read sets the values that no flag has set, from the environment or else from the file. It reports
// all mistakes together.
func (t *Table) Read() error {
	document, err := t.open()
	t.unread = err != nil && document.values == nil
	mistakes := []error{err, t.strayVariables()}
	for s := range t.All() {
		mistakes = append(mistakes, s.read(document))
	}
	for s := range t.All() {
		if t.wants(s) { // a command without the setting may run without permission to read the secret
			mistakes = append(mistakes, s.readSecret())
		}
	}
	return errors.Join(mistakes...)
}

// Unread reports whether the file exists but is unreadable, so that its settings are unknown.
func (t *Table) Unread() bool { return t.unread }

func (s *Setting) read(d document) error {
	if s.flag.Changed {
		s.origin = origin{source: byFlag, name: s.Name}
		var mistakes []error
		for _, wrong := range s.mistyped {
			mistakes = append(mistakes, s.invalidValue(wrong.text, wrong.reason))
		}
		return errors.Join(mistakes...)
	}
	if value := os.Getenv(variable(s.Name)); value != "" { // empty means unset, as in compose files
		s.origin = origin{source: byEnvironment, name: s.Name}
		return s.take(value)
	}
	if node := d.values[s.Name]; node != nil {
		s.origin = origin{source: byFile, name: s.Name, place: d.places[s.Name]}
		return s.takeNode(node)
	}
	return nil
}

func (s *Setting) take(value string) error {
	if err := s.value.Set(value); err != nil {
		return s.invalidValue(value, err)
	}
	if s.secret && value == hidden {
		return fmt.Errorf("%s is %s, which stands for a hidden secret: write the secret itself", s.spelled(), hidden)
	}
	if s.hideQuery && strings.HasSuffix(value, "?"+hidden) {
		return fmt.Errorf("%s has %s, which stands for a hidden secret: write the query itself", s.spelled(), hidden)
	}
	return nil
}

func (s *Setting) invalidValue(value string, reason error) error {
	if mapping := new(mappingError); errors.As(reason, &mapping) {
		return fmt.Errorf("%s: %w", s.spelled(), mapping)
	}
	if s.secret {
		value = hidden
	}
	return fmt.Errorf("%s is %q: write %s", s.spelled(), value, s.shape.expected)
}

// takeNode is as strict as the JSON schema.
func (s *Setting) takeNode(node *yaml.Node) error {
	items, isList := []*yaml.Node{node}, s.shape.list
	switch {
	case isList && node.Kind == yaml.SequenceNode:
		items = node.Content
	case s.shape.single:
		isList = false
	}
	switch {
	case node.Kind == yaml.AliasNode || slices.ContainsFunc(items, func(n *yaml.Node) bool {
		return n.Kind == yaml.AliasNode
	}):
		return fmt.Errorf("%s is an alias: write the value itself", s.spelled())
	case node.ShortTag() == "!!null":
		return fmt.Errorf("%s has no value: write %s, or leave the line out", s.spelled(), s.shape.expected)
	case isList != (node.Kind == yaml.SequenceNode), slices.ContainsFunc(items, s.isForeign):
		return fmt.Errorf("%s is %s: write %s", s.spelled(), s.describe(node), s.shape.expected)
	case !s.shape.list:
		return s.take(node.Value)
	}
	return s.takeItems(items)
}

func (s *Setting) takeItems(items []*yaml.Node) error {
	var texts []string
	for i, item := range items {
		text, err := itemOf(item)
		if err != nil {
			return s.invalidValue("", &mappingError{i + 1, err})
		}
		texts = append(texts, text)
	}
	if err := s.flag.Value.(pflag.SliceValue).Replace(texts); err != nil {
		return s.invalidValue(strings.Join(texts, ", "), err)
	}
	return nil
}

func (s *Setting) isForeign(node *yaml.Node) bool {
	if node.Kind != yaml.ScalarNode {
		return !s.shape.mappings || node.Kind != yaml.MappingNode
	}
	isWord := node.Style == 0 && slices.Contains(s.shape.words, node.Value) // a text without quotes
	return !isWord && !slices.Contains(s.shape.tags, node.ShortTag())
}

func (s *Setting) describe(node *yaml.Node) string {
	switch {
	case s.secret:
		return hidden
	case node.Kind == yaml.MappingNode:
		return "a mapping"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	default:
		return node.Value
	}
}

// readSecret reads the secret from its file, unless the secret itself is set with higher
// precedence.
func (s *Setting) readSecret() error {
	if s.fromFile == nil || s.fromFile.flag.Value.String() == "" || s.origin.source > s.fromFile.origin.source {
		return nil
	}
	if s.origin.source == s.fromFile.origin.source {
		return fmt.Errorf("%s and %s are both set: keep one of them", s.spelled(), s.fromFile.spelled())
	}
	text, err := ReadFile(s.fromFile.flag.Value.String(), secretLimit)
	secret := strings.TrimRight(string(text), "\r\n")
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be read: %w", s.fromFile.spelled(), err)
	case secret == "":
		return fmt.Errorf("%s names an empty file: put the secret into it", s.fromFile.spelled())
	}
	s.origin = s.fromFile.origin
	return s.take(secret)
}

// strayVariables reports mistyped variables. It ignores others with our prefix, because Kubernetes
// derives some from a service's name.
func (t *Table) strayVariables() error {
	var mistakes []error
	for _, line := range os.Environ() {
		typed, _, _ := strings.Cut(line, "=")
		rest, ours := strings.CutPrefix(typed, prefix)
		if !ours {
			continue
		}
		name := strings.ToLower(strings.ReplaceAll(rest, "_", "-"))
		if near := t.nearest(name); near != "" && near != name && name != t.path.Name {
			mistakes = append(mistakes, fmt.Errorf("unknown setting %s: did you mean %s?", typed, variable(near)))
		}
	}
	return errors.Join(mistakes...)
}

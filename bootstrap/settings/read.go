package settings

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	secretLimit = 64 << 10
	hidden      = "[hidden]" // printed instead of a secret
	fromFile    = "file:"    // begins a value that names the file of a secret
)

// Read sets the values from the flags, or else from the environment, or else from the file. It
// reports all mistakes together.
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
	value, node := os.Getenv(variable(s.Name)), d.values[s.Name]
	var texts []string
	var err error
	switch {
	case s.flag.Changed:
		s.origin = origin{source: byFlag}
		texts, err = s.split(s.typed...)
	case value != "": // empty means unset, as in compose files
		s.origin = origin{source: byEnvironment}
		texts, err = s.split(value)
	case node != nil:
		s.origin = origin{source: byFile, place: d.positions[s.Name]}
		texts, err = s.textsOf(node)
	default:
		return nil
	}
	if err != nil {
		return s.explain(err)
	}
	if s.secret && strings.HasPrefix(texts[0], fromFile) {
		s.secretFile = texts[0]
		return nil
	}
	return s.take(texts)
}

// split returns the items of a list: those between commas and in lines, where an item with a comma
// needs quotes, or mappings in JSON.
func (s *Setting) split(typed ...string) (items []string, err error) {
	if !s.list {
		return typed, nil
	}
	for _, text := range typed {
		var more []string
		if s.mappings && (isMapping(text) || strings.HasPrefix(text, "[")) {
			more, err = s.splitJSON(text)
		} else {
			more, err = splitLines(text)
		}
		if err != nil {
			return nil, err
		}
		items = append(items, more...)
	}
	return items, nil
}

func (s *Setting) splitJSON(text string) ([]string, error) {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil || len(root.Content) != 1 {
		return nil, &wrongText{hidden, 1, errors.New("it is not JSON")}
	}
	list := root.Content[0]
	if list.Kind == yaml.MappingNode {
		list = &yaml.Node{Kind: yaml.SequenceNode, Content: root.Content}
	}
	return s.textsOf(list)
}

func splitLines(text string) ([]string, error) {
	lines := csv.NewReader(strings.NewReader(text))
	lines.FieldsPerRecord = -1 // lines may differ in their number of items
	records, err := lines.ReadAll()
	if err != nil {
		return nil, &wrongText{text, 1, err}
	}
	return slices.Concat(records...), nil
}

// textsOf returns the value of the file, or the items of its list. It is as strict as the JSON
// schema.
func (s *Setting) textsOf(node *yaml.Node) (texts []string, err error) {
	items, isList := []*yaml.Node{node}, s.list
	switch {
	case isList && node.Kind == yaml.SequenceNode:
		items = node.Content
	case s.single: // the item stands without the list
		isList = false
	}
	if err := s.checkNode(node, items, isList); err != nil {
		return nil, err
	}
	for i, item := range items {
		text, err := textOf(item)
		if err != nil {
			return nil, fmt.Errorf("%s: number %d: %w", s.spelled(), i+1, err)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// checkNode refuses a node that is not the value of the setting; items are the node itself, or what
// it lists.
func (s *Setting) checkNode(node *yaml.Node, items []*yaml.Node, isList bool) error {
	isAlias := func(n *yaml.Node) bool { return n.Kind == yaml.AliasNode }
	switch {
	case isAlias(node), slices.ContainsFunc(items, isAlias):
		return fmt.Errorf("%s is an alias: write the value itself", s.spelled())
	case node.ShortTag() == "!!null":
		return fmt.Errorf("%s has no value: write %s, or leave the line out", s.spelled(), s.expected)
	case isList && node.Kind == yaml.ScalarNode:
		return fmt.Errorf("%s is %s: put each item on a line below the name, after \"- \", because the value is %s",
			s.spelled(), s.describe(node), s.expected)
	case isList != (node.Kind == yaml.SequenceNode), slices.ContainsFunc(items, s.isForeign):
		return fmt.Errorf("%s is %s: write %s", s.spelled(), s.describe(node), s.expected)
	}
	return nil
}

// isForeign reports whether the node is of a type that no item of the setting has.
func (s *Setting) isForeign(node *yaml.Node) bool {
	if node.Kind != yaml.ScalarNode {
		return !s.mappings || node.Kind != yaml.MappingNode
	}
	isWord := node.Style == 0 && slices.Contains(s.words, node.Value) // a text without quotes
	return !isWord && !slices.Contains(s.tags, node.ShortTag())
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

// take sets the value.
func (s *Setting) take(texts []string) error {
	if err := s.set(texts); err != nil {
		return s.explain(err)
	}
	switch {
	case s.secret && texts[0] == hidden:
		return fmt.Errorf("%s is %s, which stands for a hidden secret: write the secret itself", s.spelled(), hidden)
	case s.hideQuery && strings.HasSuffix(texts[0], "?"+hidden):
		return fmt.Errorf("%s has %s, which stands for a hidden secret: write the query itself", s.spelled(), hidden)
	}
	return nil
}

// explain does not repeat a secret, or a mapping, which may hold one.
func (s *Setting) explain(err error) error {
	wrong := new(wrongText)
	switch {
	case !errors.As(err, &wrong):
		return err
	case s.mappings && isMapping(wrong.text):
		return fmt.Errorf("%s: number %d: %w", s.spelled(), wrong.number, wrong)
	case s.secret:
		return fmt.Errorf("%s is %q: write %s", s.spelled(), hidden, s.expected)
	}
	return fmt.Errorf("%s is %q: write %s", s.spelled(), wrong.text, s.expected)
}

// readSecret reads the secret from its file.
func (s *Setting) readSecret() error {
	path, named := strings.CutPrefix(s.secretFile, fromFile)
	if !named {
		return nil
	}
	text, err := ReadFile(path, secretLimit)
	secret := strings.TrimRight(string(text), "\r\n")
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be read: %w", s.spelled(), err)
	case secret == "":
		return fmt.Errorf("%s names an empty file: put the secret into it", s.spelled())
	}
	return s.take([]string{secret})
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
		if near := t.nearest(name); near != "" && near != name && name != t.file.Name {
			mistakes = append(mistakes, fmt.Errorf("unknown setting %s: did you mean %s?", typed, variable(near)))
		}
	}
	return errors.Join(mistakes...)
}

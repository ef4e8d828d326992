package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"
)

// WriteEffective prints every setting, or those that are set, with its value and origin, as a valid
// file of settings. Secrets are hidden.
func (t *Table) WriteEffective(w io.Writer, setOnly bool) error {
	shown := func(s *Setting) bool { return !setOnly || s.origin.source != byDefault }
	return t.write(w, shown, func(s *Setting) (string, error) {
		line, err := s.line(s.values(), yaml.Style(0))
		first, rest, _ := strings.Cut(line, "\n")
		return fmt.Sprintf("%s # %s\n%s", first, s.from(), rest), err
	})
}

// WriteExample prints a file that sets the active settings and has the others as comments. Without
// others it has every setting.
func (t *Table) WriteExample(w io.Writer, active, others []string) error {
	const schema = "pasteport.schema.json"
	_, err := fmt.Fprintf(w,
		"# yaml-language-server: $schema=%s\n# To create this schema, run: pasteport config schema >%s\n"+
			"# To change a setting, remove the # in front of it.\n\n", schema, schema)
	if err != nil {
		return err
	}
	shown := func(s *Setting) bool {
		return len(others) == 0 || slices.Contains(slices.Concat(active, others), s.Name)
	}
	return t.write(w, shown, func(s *Setting) (string, error) {
		values, mark := s.values(), "#"
		if s.example != nil {
			values = s.example
		}
		if slices.Contains(active, s.Name) {
			values, mark = values[:1], ""
		}
		line, err := s.line(values, yaml.FlowStyle)
		return "# " + s.meaning() + "\n" + mark + line, err
	})
}

func (t *Table) write(w io.Writer, shown func(*Setting) bool, entry func(*Setting) (string, error)) error {
	blank := ""
	for _, group := range t.groups {
		title := blank + "# " + group.Title + "\n"
		for _, s := range group.Settings {
			if !shown(s) {
				continue
			}
			text, err := entry(s)
			text, title, blank = title+text, "", "\n"
			if err != nil {
				return fmt.Errorf("writing %s: %w", s.Name, err)
			}
			if _, err := io.WriteString(w, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// values returns the value as text. Only a list has several.
func (s *Setting) values() []string {
	if s.list {
		return s.texts()
	}
	value := s.text()
	address, _, hasQuery := strings.Cut(value, "?")
	switch {
	case s.secret && value != "":
		value = hidden
	case s.hideQuery && hasQuery:
		value = address + "?" + hidden
	}
	return []string{value}
}

// line returns the setting in YAML. how is the style of a list.
func (s *Setting) line(values []string, how yaml.Style) (string, error) {
	value := yaml.Node{Kind: yaml.SequenceNode, Style: how}
	for _, item := range values {
		node, err := s.nodeOf(item)
		if err != nil {
			return "", err
		}
		value.Content = append(value.Content, node)
	}
	if !s.list {
		value = *value.Content[0]
	}
	name := yaml.Node{Kind: yaml.ScalarNode, Value: s.Name}
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	err := encoder.Encode(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{&name, &value}})
	return text.String(), err
}

// meaning returns the doc with the default.
func (s *Setting) meaning() string {
	if s.defaultText == "" {
		return s.Doc
	}
	return s.Doc + " (default: " + s.defaultText + ")"
}

// WriteSchema prints the JSON schema of the file, for completion and checks in editors.
func (t *Table) WriteSchema(w io.Writer) error {
	schema := jsonschema.Schema{
		Schema:               "https://json-schema.org/draft/2020-12/schema",
		Title:                "Settings of Pasteport",
		Type:                 "object",
		Properties:           map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	for s := range t.All() {
		property, err := s.describedSchema()
		if err != nil {
			return fmt.Errorf("describing %s: %w", s.Name, err)
		}
		schema.Properties[s.Name] = property
		schema.PropertyOrder = append(schema.PropertyOrder, s.Name)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(&schema)
}

func (s *Setting) describedSchema() (*jsonschema.Schema, error) {
	property := s.schema
	property.Description = s.meaning()
	if s.example != nil && !s.list {
		property.Examples = []any{s.example[0]}
	}
	if s.pattern != "" {
		property.Pattern = s.pattern
	}
	values := s.values()
	switch {
	case s.list || s.defaultText != "" || s.secret || values[0] == "":
		return &property, nil // the description names the default
	case s.tags[0] == "!!bool", s.tags[0] == "!!int":
		property.Default = json.RawMessage(values[0])
		return &property, nil
	}
	value, err := json.Marshal(values[0])
	property.Default = value
	return &property, err
}

// WriteReference prints a table in Markdown with every setting, its default and its doc.
func (t *Table) WriteReference(w io.Writer) error {
	var text strings.Builder
	text.WriteString("| setting | default | |\n|---|---|---|\n")
	for _, group := range t.groups {
		fmt.Fprintf(&text, "| **%s** | | |\n", group.Title)
		for _, s := range group.Settings {
			fmt.Fprintf(&text, "| `%s` | %s | %s |\n", s.Name, s.documentedDefault(),
				strings.ReplaceAll(s.Doc, "|", "\\|"))
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func (s *Setting) documentedDefault() string {
	switch value := s.flag.DefValue; {
	case s.defaultText != "":
		return s.defaultText
	case value == "" && s.tags[0] != "!!bool":
		return "none"
	case value == "false":
		return "off"
	default:
		return "`" + value + "`"
	}
}

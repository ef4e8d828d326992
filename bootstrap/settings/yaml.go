package settings

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// WriteEffective prints every setting with its value and origin, as a valid file of settings. Secrets are hidden.
func (t *Table) WriteEffective(w io.Writer) error {
	return t.write(w, func(s *Setting) (string, error) {
		line, err := s.line(s.values(), yaml.Style(0))
		first, rest, _ := strings.Cut(line, "\n")
		return fmt.Sprintf("%s # %s\n%s", first, s.from(), rest), err
	})
}

// WriteExample prints a file that explains every setting. Required settings are set, all others are comments.
func (t *Table) WriteExample(w io.Writer) error {
	const schema = "pasteport.schema.json"
	_, err := fmt.Fprintf(w, "# yaml-language-server: $schema=%s\n# To create this schema, run: pasteport config schema >%s\n"+
		"# To change a setting, remove the # in front of it.\n\n", schema, schema)
	if err != nil {
		return err
	}
	return t.write(w, func(s *Setting) (string, error) {
		values, mark := s.values(), "#"
		if s.example != nil {
			values = s.example
		}
		if s.required {
			mark = ""
		}
		line, err := s.line(values, yaml.FlowStyle)
		return "# " + s.meaning() + "\n" + mark + line, err
	})
}

func (t *Table) write(w io.Writer, entry func(*Setting) (string, error)) error {
	for i, group := range t.groups {
		title := "# " + group.Title + "\n"
		if i > 0 {
			title = "\n" + title
		}
		if _, err := io.WriteString(w, title); err != nil {
			return err
		}
		for _, s := range group.all() {
			text, err := entry(s)
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
	value := s.flag.Value.String()
	if list, ok := s.flag.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
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
		value.Content = append(value.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: s.shape.tags[0], Value: item})
	}
	if !s.shape.list {
		value = *value.Content[0]
	}
	name := yaml.Node{Kind: yaml.ScalarNode, Value: s.Name}
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	err := encoder.Encode(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{&name, &value}})
	return text.String(), err
}

// meaning returns the doc with the defaultText default.
func (s *Setting) meaning() string {
	if s.defaultText == "" {
		return s.Doc
	}
	return s.Doc + " (default: " + s.defaultText + ")"
}

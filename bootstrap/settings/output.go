package settings

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"
)

// WriteEffective prints every setting, or those that are set, with its value and origin, as a valid
// file of settings. Secrets are hidden.
func (t *Table) WriteEffective(w io.Writer, setOnly bool) error {
	return t.write(w, "# %s\n", "\n", func(s *setting) string {
		from := cmp.Or(s.from, "default")
		switch unset := s.tag.Get("unset"); {
		case setOnly && s.from == "":
			return ""
		case s.from == "" && unset != "" && s.value.IsZero():
			from += ": " + unset
		}
		first, rest, _ := strings.Cut(s.line(), "\n")
		return first + " # " + from + "\n" + rest
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
	return t.write(w, "# %s\n", "\n", func(s *setting) string {
		line := s.line()
		if s.isSecret() {
			line = s.name + ": " + FromFile + "/run/secrets/" + s.name + "\n"
		} else if example := s.tag.Get("example"); example != "" {
			line = s.name + ": " + example + "\n"
		}
		switch {
		case slices.Contains(active, s.name):
			return "# " + s.meaning + "\n" + line
		case len(others) == 0 || slices.Contains(others, s.name):
			return "# " + s.meaning + "\n#" + line
		}
		return ""
	})
}

// WriteReference prints a table in Markdown with every setting, its default and its doc.
func (t *Table) WriteReference(w io.Writer) error {
	if _, err := io.WriteString(w, "| setting | default | |\n|---|---|---|\n"); err != nil {
		return err
	}
	return t.write(w, "| **%s** | | |\n", "", func(s *setting) string {
		shown := cmp.Or(s.tag.Get("unset"), "none")
		switch value := s.flag.DefValue; {
		case s.tag.Get("unset") != "":
		case value == "false":
			shown = "off"
		case value != "":
			shown = "`" + value + "`"
		}
		return fmt.Sprintf("| `%s` | %s | %s |\n", s.name, shown, strings.ReplaceAll(s.doc, "|", "\\|"))
	})
}

// write prints the nonempty entries, each group below its title. between separates the groups.
func (t *Table) write(w io.Writer, title, between string, entry func(*setting) string) error {
	var text strings.Builder
	group := ""
	for _, s := range t.settings {
		printed := entry(s)
		if printed != "" && s.group != group {
			if group != "" {
				text.WriteString(between)
			}
			group = s.group
			fmt.Fprintf(&text, title, group)
		}
		text.WriteString(printed)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// line returns the setting in YAML.
func (s *setting) line() string {
	var text strings.Builder
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(map[string]*yaml.Node{s.name: s.node()}); err != nil {
		panic(err) // a mistake in the type
	}
	return text.String()
}

// WriteSchema prints the JSON schema of the file, for completion and checks in editors.
func (t *Table) WriteSchema(w io.Writer) error {
	schema := jsonschema.Schema{
		Schema:               "https://json-schema.org/draft/2020-12/schema",
		Title:                "Settings of Pasteport",
		Type:                 "object",
		Properties:           map[string]*jsonschema.Schema{},
		PropertyOrder:        t.Names(),
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	for _, s := range t.settings {
		property, err := s.schema()
		if err != nil {
			return fmt.Errorf("describing %s: %w", s.name, err)
		}
		schema.Properties[s.name] = property
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(&schema)
}

func (s *setting) schema() (*jsonschema.Schema, error) {
	property := s.kind().schema
	property.Pattern = cmp.Or(property.Pattern, s.tag.Get("pattern"))
	for _, choice := range s.choices() {
		property.Enum = append(property.Enum, choice)
	}
	if s.isList() { // one item may stand without the list
		items := []*jsonschema.Schema{&property}
		if s.keys() != nil {
			mapping, err := jsonschema.ForType(s.item(), nil)
			if err != nil {
				return nil, err
			}
			items = append(items, mapping)
		}
		list := jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{AnyOf: items}}
		return &jsonschema.Schema{Description: s.meaning, AnyOf: append(items, &list)}, nil
	}
	property.Description = s.meaning
	if text := s.flag.DefValue; text != "" && s.tag.Get("unset") == "" {
		if property.Default = json.RawMessage(text); !json.Valid(property.Default) {
			property.Default = json.RawMessage(strconv.Quote(text))
		}
	}
	return &property, nil
}

package settings

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/google/jsonschema-go/jsonschema"
)

// WriteSchema prints the JSON schema of the file, for completion and checks in editors.
func (t *Table) WriteSchema(w io.Writer) error {
	schema := jsonschema.Schema{
		Schema: "https://json-schema.org/draft/2020-12/schema", Title: "Settings of Pasteport", Type: "object",
		Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	for s := range t.All() {
		property, err := s.schema()
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

func (s *Setting) schema() (*jsonschema.Schema, error) {
	property := s.shape.schema
	property.Description = s.meaning()
	if s.example != nil && !s.shape.list {
		property.Examples = []any{s.example[0]}
	}
	if s.pattern != "" {
		property.Pattern = s.pattern
	}
	values := s.values()
	switch {
	case s.shape.list || s.defaultText != "" || s.secret || values[0] == "":
		return &property, nil // the description names the default
	case s.shape.tags[0] == "!!bool", s.shape.tags[0] == "!!int":
		property.Default = json.RawMessage(values[0])
		return &property, nil
	}
	value, err := json.Marshal(values[0])
	property.Default = value
	return &property, err
}

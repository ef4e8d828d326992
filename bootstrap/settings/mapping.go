package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"
)

// Mapping returns an item that is written as a mapping. The keys are the JSON names of T's fields;
// the tag jsonschema describes each.
func Mapping[T any](expected string) Item[T] {
	schema, err := jsonschema.For[T](nil)
	if err != nil {
		panic(err) // a mistake in T
	}
	return Item[T]{
		Expected: expected,
		Mapping:  schema,
		Parse:    parseMapping[T],
		Format:   formatMapping[T],
	}
}

// parseMapping decodes a JSON object. It refuses unknown keys and values of another type.
func parseMapping[T any](text string) (value T, err error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&value)
	if err == nil {
		return value, nil
	}
	if mistyped := new(json.UnmarshalTypeError); errors.As(err, &mistyped) && mistyped.Field != "" {
		return value, fmt.Errorf("%s has a value of another type: write %s", mistyped.Field, mistyped.Type)
	}
	if _, key, isUnknown := strings.Cut(err.Error(), "unknown field "); isUnknown {
		return value, errors.New("the mapping cannot be read: the key " + key + " is unknown")
	}
	return value, errors.New("it is not a mapping")
}

// formatMapping is the reverse of parseMapping.
func formatMapping[T any](value T) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // a mistake in T
	}
	return strings.TrimSpace(text.String())
}

// textOf returns a scalar as it is and a mapping as a JSON object.
func textOf(node *yaml.Node) (string, error) {
	if node.Kind == yaml.ScalarNode {
		return node.Value, nil
	}
	var value map[string]any
	if err := node.Decode(&value); err != nil {
		return "", errors.New("it is not a mapping: " + strings.TrimPrefix(err.Error(), "yaml: "))
	}
	text, err := json.Marshal(value)
	return string(text), err
}

// nodeOf is the reverse of textOf.
func (k kind) nodeOf(text string) (*yaml.Node, error) {
	if !k.mappings || !isMapping(text) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: k.tags[0], Value: text}, nil
	}
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		return nil, err
	}
	mapping := root.Content[0]
	mapping.Style = 0
	for _, value := range mapping.Content {
		value.Style = 0
	}
	return mapping, nil
}

func isMapping(text string) bool { return strings.HasPrefix(text, "{\"") }

package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"
)

// shape is the kind of a value: its YAML tags, its description in errors, its JSON schema and its
// completion.
type shape struct {
	tags     []string // of the value, or of the items of a list
	words    []string // that are a value without quotes, besides those with the tags
	list     bool
	single   bool   // one item of the list can stand without the list
	mappings bool   // items of the list can be mappings
	expected string // completes "write ..." in errors
	schema   jsonschema.Schema
	complete cobra.CompletionFunc
}

const spanPattern = `^(0|-?([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)([0-9.]+(ns|us|µs|ms|s|m|h))*)$`

const sizePattern = `^[0-9]+(\.[0-9]+)? ?([kKMGT]i?)?[bB]?$`

var (
	text = shape{
		tags: []string{"!!str"}, expected: "a text, in quotes if it begins with # or looks like a number",
		schema: jsonschema.Schema{Type: "string"}, complete: cobra.NoFileCompletions,
	}
	onOff = shape{
		tags: []string{"!!bool"}, words: []string{"on", "off"}, expected: "true or false",
		schema:   jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "boolean"}, {Enum: []any{"on", "off"}}}},
		complete: words("true", "false"),
	}
	bytesOrUnits = shape{
		tags: []string{"!!str", "!!int"}, expected: "a size such as 4MiB, or a number of bytes",
		complete: cobra.NoFileCompletions,
		schema: jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string", Pattern: sizePattern},
			{Type: "integer", Minimum: jsonschema.Ptr(1.0)}}},
	}
	duration = shape{
		tags: []string{"!!str", "!!int"}, expected: "a duration such as 1h30m", complete: cobra.NoFileCompletions,
		schema: jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string", Pattern: spanPattern},
			{Type: "integer", Enum: []any{0}}}},
	}
	file    = named("the name of a file", "", cobra.ShellCompDirectiveDefault)
	folder  = named("the name of a folder", "", cobra.ShellCompDirectiveFilterDirs)
	address = named("a URL", "uri", cobra.ShellCompDirectiveNoFileComp)
)

func named(expected, format string, directive cobra.ShellCompDirective) shape {
	return shape{
		tags: []string{"!!str"}, expected: expected, complete: cobra.FixedCompletions(nil, directive),
		schema: jsonschema.Schema{Type: "string", Format: format},
	}
}

func oneOf(choices []string) shape {
	schema := jsonschema.Schema{Type: "string"}
	for _, word := range choices {
		schema.Enum = append(schema.Enum, word)
	}
	return shape{
		tags:     []string{"!!str"},
		expected: strings.Join(choices, " or "),
		complete: words(choices...),
		schema:   schema,
	}
}

// listOf is the shape of a list. mapping is the schema of items that can be mappings, or nil.
func listOf(expected string, mapping *jsonschema.Schema) shape {
	items := &jsonschema.Schema{Types: []string{"string", "integer"}}
	if mapping != nil {
		items = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{items, mapping}}
	}
	return shape{
		tags:     []string{"!!str", "!!int"},
		list:     true,
		mappings: mapping != nil,
		expected: "a list of " + expected,
		complete: cobra.NoFileCompletions,
		schema:   jsonschema.Schema{Type: "array", Items: items},
	}
}

// orSingle is the shape of a list whose only item can stand without the list.
func (s shape) orSingle() shape {
	list := s.schema
	s.single, s.schema = true, jsonschema.Schema{AnyOf: []*jsonschema.Schema{&list, list.Items}}
	return s
}

func words(choices ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(slices.Clone(choices), cobra.ShellCompDirectiveNoFileComp)
}

// wholeFrom is the shape of a whole number with a minimum.
func wholeFrom(least int) shape {
	return shape{
		tags: []string{"!!int"}, expected: fmt.Sprintf("a whole number of %d or more", least),
		complete: cobra.NoFileCompletions,
		schema:   jsonschema.Schema{Type: "integer", Minimum: jsonschema.Ptr(float64(least))},
	}
}

// Package settings reads the tagged fields of a configuration from flags, environment variables and
// one YAML file, in this order of precedence, over their defaults. A setting has one name in three
// spellings: --access-token-ttl, PASTEPORT_ACCESS_TOKEN_TTL, and access-token-ttl: in the file.
// Help, completion, mistakes and all that "pasteport config" prints come from the same tags:
//
//	set, doc  the name, and what it is for
//	group     the title in help and tables; that of a struct applies to its fields
//	default   the value, as a flag spells it, that a zero field gets
//	unset     describes what applies if the setting is not set
//	example   a value, in YAML, for the example file
//	min, max  the bounds of a number, duration or size; off lets 0 turn off a duration
//	choices   the allowed values, separated by commas
//	pattern   a regular expression that matches the allowed values
//	allowed   completes "write ..." in mistakes, in the plural for a list
//	path      "file" or "folder", for completion
//	secret    "true" hides the value, which may be file:PATH; "query" hides the query of a URL;
//	          "items" hides what mistakes repeat of a list
//	field     another name of the field in an oauth.Mistake
//
// The function parse lists the types of fields. A list may also have structs with JSON tags.
package settings

import (
	"cmp"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/pasteport/pasteport/domain/oauth"
)

// setting is a tagged field.
type setting struct {
	name, group  string
	doc, meaning string // without and with the default

	tag     reflect.StructTag
	field   string // path of the field in the configuration
	value   reflect.Value
	flag    *pflag.Flag
	typed   []string // texts of the flag, which may be repeated
	spelled string   // the name in the spelling in which it was set
	from    string   // where it was set; "" for the default
}

// settingsOf returns the settings among the fields of a struct and of the structs in it. outer is
// the path of the struct. The fields of an embedded struct have the path of the outer struct.
func settingsOf(outer, group string, config reflect.Value) (all []*setting) {
	for i := range config.NumField() {
		field, value := config.Type().Field(i), config.Field(i)
		path, title := outer+field.Name, cmp.Or(field.Tag.Get("group"), group)
		switch {
		case field.Tag.Get("set") != "":
			all = append(all, newSetting(path, title, field.Tag, value))
		case field.Anonymous:
			all = append(all, settingsOf(outer, title, value)...)
		case value.Kind() == reflect.Struct:
			all = append(all, settingsOf(path+".", title, value)...)
		}
	}
	return all
}

func newSetting(path, group string, tag reflect.StructTag, value reflect.Value) *setting {
	name := tag.Get("set")
	s := &setting{
		name:    name,
		doc:     tag.Get("doc"),
		group:   group,
		tag:     tag,
		field:   cmp.Or(tag.Get("field"), path),
		value:   value,
		spelled: name,
	}
	if tag.Get("max") != "" {
		s.doc += s.bounds()
	}
	if s.isSecret() {
		s.doc += "; file:PATH reads it from a file"
	}
	if text := tag.Get("default"); text != "" && value.IsZero() {
		if err := s.take(textNode(text)); err != nil {
			panic(err) // a mistake in the tag
		}
	}
	s.meaning = s.doc
	if unset := tag.Get("unset"); unset != "" {
		s.meaning += " (default: " + unset + ")"
	}
	s.flag = &pflag.Flag{
		Name:     name,
		Usage:    s.doc,
		Value:    s,
		DefValue: s.String(),
	}
	if s.Type() == "bool" {
		s.flag.NoOptDefVal = "true"
	}
	return s
}

// Set keeps the text of a flag for Table.Read, which reports all mistakes together.
func (s *setting) Set(text string) error {
	s.typed = append(s.typed, text)
	return nil
}

// String returns the value, or Hidden for a secret, or "" for a list. It does not encode YAML,
// because each start of the program would take three times as much CPU.
func (s *setting) String() string {
	if s.isList() {
		return ""
	}
	return s.withoutSecret(fmt.Sprint(printable(s.value)))
}

// Type returns the type in help.
func (s *setting) Type() string {
	if s.isList() {
		return "list"
	}
	return cmp.Or(strings.Join(s.choices(), "|"), s.kind().flag)
}

func (s *setting) isSecret() bool { return s.tag.Get("secret") == "true" }

func (s *setting) isList() bool { return s.value.Kind() == reflect.Slice }

// item is the type of the value, or of the items of a list.
func (s *setting) item() reflect.Type {
	if s.isList() {
		return s.value.Type().Elem()
	}
	return s.value.Type()
}

// choices returns the values that are allowed, nil for any.
func (s *setting) choices() []string {
	return strings.FieldsFunc(s.tag.Get("choices"), func(r rune) bool { return r == ',' })
}

// kind describes a type: in help, in mistakes and in the JSON schema.
type kind struct {
	flag, expected string
	schema         jsonschema.Schema
}

const durationPattern = `^(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h|d)([0-9.]+(ns|us|µs|ms|s|m|h))*)$`

var textOrNumber = []string{"string", "integer"}

var kinds = map[reflect.Type]kind{
	reflect.TypeFor[bool]():  {"bool", "true or false", jsonschema.Schema{Enum: []any{true, false, "on", "off"}}},
	reflect.TypeFor[int]():   {"number", "a whole number", jsonschema.Schema{Type: "integer"}},
	reflect.TypeFor[int64](): {"size", "a size such as 4MiB", jsonschema.Schema{Types: textOrNumber}},
	reflect.TypeFor[time.Duration](): {"duration", "a duration such as 1h30m", jsonschema.Schema{
		Types:   textOrNumber,
		Pattern: durationPattern,
		Maximum: jsonschema.Ptr(0.0), // a number other than 0 needs a unit
	}},
	reflect.TypeFor[string](): {"string", "a text, in quotes if it begins with #", jsonschema.Schema{Type: "string"}},
}

func (s *setting) kind() kind {
	if known, ok := kinds[s.item()]; ok {
		return known
	}
	return kind{"string", "", jsonschema.Schema{Types: textOrNumber}}
}

// keys returns the keys of a mapping; none if the setting has no mappings.
func (s *setting) keys() (keys []string) {
	if s.item().Kind() != reflect.Struct {
		return nil
	}
	for _, field := range reflect.VisibleFields(s.item()) {
		if key, _, _ := strings.Cut(field.Tag.Get("json"), ","); key != "" && key != "-" {
			keys = append(keys, key)
		}
	}
	return keys
}

// allowed completes "write ..." in mistakes.
func (s *setting) allowed() string {
	expected := cmp.Or(s.tag.Get("allowed"), strings.Join(s.choices(), " or "))
	if s.isList() {
		return "a list of " + cmp.Or(expected, "texts")
	}
	return cmp.Or(expected, s.kind().expected) + s.bounds()
}

func (s *setting) bounds() (text string) {
	least, most := s.tag.Get("min"), s.tag.Get("max")
	switch {
	case most != "":
		text = ", from " + least + " to " + most
	case least != "":
		text = ", " + least + " or more"
	}
	if s.tag.Get("off") != "" {
		text += "; 0 turns it off"
	}
	return text
}

// isAllowed reports whether a value, or an item of a list, is allowed. It was read from the text.
func (s *setting) isAllowed(text string, value reflect.Value) bool {
	choices, pattern := s.choices(), s.tag.Get("pattern")
	switch {
	case len(choices) > 0 && !slices.Contains(choices, text),
		pattern != "" && !regexp.MustCompile(pattern).MatchString(text):
		return false
	case !value.CanInt(), s.tag.Get("off") != "" && value.Int() == int64(oauth.Off):
		return true
	}
	limit := reflect.New(value.Type()).Elem() // the minimum, then the maximum; parse fails without the tag
	isLess := parse(s.tag.Get("min"), limit) == nil && value.Int() < limit.Int()
	return !isLess && (parse(s.tag.Get("max"), limit) != nil || value.Int() <= limit.Int())
}

// node returns the value in YAML, with Hidden in place of a secret.
func (s *setting) node() *yaml.Node {
	node := new(yaml.Node)
	if err := node.Encode(printable(s.value)); err != nil {
		panic(err) // a mistake in the type
	}
	node.Value = s.withoutSecret(node.Value)
	return node
}

func (s *setting) withoutSecret(text string) string {
	address, _, hasQuery := strings.Cut(text, "?")
	switch {
	case s.isSecret() && text != "":
		return Hidden
	case s.tag.Get("secret") == "query" && hasQuery:
		return address + "?" + Hidden
	}
	return text
}

// printable returns a value in a type that YAML prints as it is read.
func printable(value reflect.Value) any {
	if value.Kind() == reflect.Slice {
		list := []any{}
		for i := range value.Len() {
			list = append(list, printable(value.Index(i)))
		}
		return list
	}
	switch v := value.Interface().(type) {
	case time.Duration:
		return FormatDuration(max(v, 0)) // oauth.Off is negative, and read from 0
	case int64:
		return formatSize(v)
	case *url.URL:
		if v == nil {
			return ""
		}
		return v.String()
	default:
		return v
	}
}

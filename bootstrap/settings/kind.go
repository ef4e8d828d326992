package settings

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"
)

// kind is how the value of a setting is read, printed and described.
type kind struct {
	set      func(texts []string) error // one text, or those of a list's items
	texts    func() []string            // the reverse of set
	flagType string                     // in help
	tags     []string                   // in YAML, of the value, or of the items of a list
	words    []string                   // that are a value without quotes, besides those with the tags
	list     bool
	single   bool   // one item of the list can stand without the list
	mappings bool   // items of the list can be mappings, whose texts are JSON objects
	expected string // completes "write ..." in errors
	schema   jsonschema.Schema
	complete cobra.CompletionFunc
}

// wrongText is a text that is not a value of its setting, or no item of its list.
type wrongText struct {
	text   string
	number int // of the item
	reason error
}

func (w *wrongText) Error() string { return w.reason.Error() }

// bind makes a kind read into a variable.
func bind[T any](target *T, parse func(string) (T, error), format func(T) string, k kind) kind {
	k.set = func(texts []string) error {
		text := texts[len(texts)-1] // a flag may be repeated
		value, err := parse(text)
		if err != nil {
			return &wrongText{text, 1, err}
		}
		*target = value
		return nil
	}
	k.texts = func() []string { return []string{format(*target)} }
	if k.complete == nil {
		k.complete = cobra.NoFileCompletions
	}
	return k
}

func verbatim(text string) (string, error) { return text, nil }

func textual(target *string, expected, format string, directive cobra.ShellCompDirective) kind {
	return bind(target, verbatim, strings.Clone, kind{
		flagType: "string",
		tags:     []string{"!!str"},
		expected: expected,
		schema:   jsonschema.Schema{Type: "string", Format: format},
		complete: cobra.FixedCompletions(nil, directive),
	})
}

func address(target **url.URL) kind {
	parse := func(text string) (*url.URL, error) {
		if text == "" {
			return nil, nil
		}
		return url.Parse(text)
	}
	format := func(u *url.URL) string {
		if u == nil {
			return ""
		}
		return u.String()
	}
	return bind(target, parse, format, textual(new(string), "a URL, with %2F for a slash in the password, and so on",
		"", cobra.ShellCompDirectiveNoFileComp))
}

func onOff(target *bool) kind {
	return bind(target, parseSwitch, strconv.FormatBool, kind{
		flagType: "bool",
		tags:     []string{"!!bool"},
		words:    []string{"on", "off"},
		expected: "true or false",
		schema:   jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "boolean"}, {Enum: []any{"on", "off"}}}},
		complete: words("true", "false"),
	})
}

func parseSwitch(text string) (bool, error) {
	switch text {
	case "on":
		return true, nil
	case "off":
		return false, nil
	}
	return strconv.ParseBool(text)
}

func wholeFrom(target *int, least int) kind {
	return bind(target, func(text string) (int, error) {
		value, err := strconv.Atoi(text)
		if err == nil && value < least {
			err = fmt.Errorf("it is less than %d", least)
		}
		return value, err
	}, strconv.Itoa, kind{
		flagType: "number",
		tags:     []string{"!!int"},
		expected: fmt.Sprintf("a whole number of %d or more", least),
		schema:   jsonschema.Schema{Type: "integer", Minimum: jsonschema.Ptr(float64(least))},
	})
}

func oneOf(target *string, choices []string) kind {
	schema := jsonschema.Schema{Type: "string"}
	for _, word := range choices {
		schema.Enum = append(schema.Enum, word)
	}
	return bind(target, func(text string) (string, error) {
		if !slices.Contains(choices, text) {
			return "", errors.New("it is not one of " + strings.Join(choices, ", "))
		}
		return text, nil
	}, strings.Clone, kind{
		flagType: strings.Join(choices, "|"),
		tags:     []string{"!!str"},
		expected: strings.Join(choices, " or "),
		schema:   schema,
		complete: words(choices...),
	})
}

func words(choices ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(slices.Clone(choices), cobra.ShellCompDirectiveNoFileComp)
}

const sizePattern = `^[0-9]+(\.[0-9]+)? ?([kKMGT]i?)?[bB]?$`

func size(target *int64) kind {
	return bind(target, parseSize, FormatSize, kind{
		flagType: "size",
		tags:     []string{"!!str", "!!int"},
		expected: "a size such as 4MiB, or a number of bytes",
		schema: jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string", Pattern: sizePattern},
			{Type: "integer", Minimum: jsonschema.Ptr(1.0)}}},
	})
}

func parseSize(text string) (int64, error) {
	bytes, err := humanize.ParseBytes(text)
	switch {
	case err != nil:
		return 0, err
	case bytes == 0 || bytes > math.MaxInt64:
		return 0, errors.New("it is 0 or too large")
	}
	return int64(bytes), nil
}

// FormatSize uses the largest binary unit that fits without a remainder.
func FormatSize(bytes int64) string {
	for _, unit := range []struct {
		name  string
		bytes int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if bytes >= unit.bytes && bytes%unit.bytes == 0 {
			return strconv.FormatInt(bytes/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(bytes, 10)
}

const durationPattern = `^(0|-?([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)([0-9.]+(ns|us|µs|ms|s|m|h))*)$`

func duration(target *time.Duration, parse func(string) (time.Duration, error),
	format func(time.Duration) string) kind {
	return bind(target, parse, format, kind{
		flagType: "duration",
		tags:     []string{"!!str", "!!int"},
		expected: "a duration such as 1h30m",
		schema: jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string", Pattern: durationPattern},
			{Type: "integer", Enum: []any{0}}}},
	})
}

func notZero(text string) (time.Duration, error) {
	value, err := time.ParseDuration(text)
	if err == nil && value == 0 {
		err = errors.New("it cannot be 0")
	}
	return value, err
}

// orOff reads every duration that is not positive as -1, which is printed as 0s.
func orOff(text string) (time.Duration, error) {
	value, err := time.ParseDuration(text)
	if value <= 0 {
		value = -1
	}
	return value, err
}

// FormatDuration omits zero units: 1h instead of 1h0m0s.
func FormatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Item parses and formats one item of a list.
type Item[T any] struct {
	Parse    func(string) (T, error)
	Format   func(T) string
	Expected string // what to write, in the plural, as in "host names"
	// Of items that can be mappings, which Parse gets and Format returns as JSON objects; nil for
	// none.
	Mapping *jsonschema.Schema
}

func listOf[T any](target *[]T, item Item[T]) kind {
	items := &jsonschema.Schema{Types: []string{"string", "integer"}}
	if item.Mapping != nil {
		items = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{items, item.Mapping}}
	}
	return kind{
		set: func(texts []string) error {
			values := make([]T, 0, len(texts))
			for i, text := range texts {
				value, err := item.Parse(strings.TrimSpace(text))
				if err != nil {
					return &wrongText{text, i + 1, err}
				}
				values = append(values, value)
			}
			*target = values
			return nil
		},
		texts: func() []string {
			texts := make([]string, 0, len(*target))
			for _, value := range *target {
				texts = append(texts, item.Format(value))
			}
			return texts
		},
		flagType: "list",
		tags:     []string{"!!str", "!!int"},
		list:     true,
		mappings: item.Mapping != nil,
		expected: "a list of " + item.Expected,
		schema:   jsonschema.Schema{Type: "array", Items: items},
		complete: cobra.NoFileCompletions,
	}
}

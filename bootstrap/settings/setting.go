// Package settings reads the configuration: flags, environment variables and one YAML file, in this
// order of precedence, over defaults. A setting has one flat name in three spellings:
// --access-token-ttl, PASTEPORT_ACCESS_TOKEN_TTL, and access-token-ttl: in the file. Help, shell
// completion, the output of "pasteport config", the JSON schema, the example file and the table in
// docs/settings.md come from the same Table.
//
// To add a setting, give it a field in service.Config and one entry in
// bootstrap/service/settings.go:
//
//	settings.Duration("auth-code-ttl", &c.AuthCodeTTL, "lifetime of a code"),
//
// The value of the field when the Table is made is the default. Then run the
// specs with UPDATE=1 for docs/settings.md. The code that uses a value checks it: Table.Explain
// reports an oauth.Mistake about the field AuthCodeTTL as one about auth-code-ttl, in the spelling
// that was used. Start reading at Table and Setting.
package settings

import (
	"bytes"
	"encoding/csv"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Setting can be set by a flag, an environment variable or a key of the file. Text, Number, List
// and the other constructors bind it to a variable.
type Setting struct {
	Name string
	Doc  string
	kind

	flag        *pflag.Flag
	typed       []string // texts of the flag
	address     uintptr  // of the variable
	example     []string
	defaultText string // describes an empty default
	pattern     string
	secret      bool
	hideQuery   bool   // the query of the URL may hold a secret
	secretFile  string // the value, if it names a file with the secret
	origin      origin
}

func newSetting(name, doc string, target any, k kind) *Setting {
	s := &Setting{
		Name:    name,
		Doc:     doc,
		kind:    k,
		address: reflect.ValueOf(target).Pointer(),
	}
	s.flag = &pflag.Flag{
		Name:     name,
		Usage:    doc,
		Value:    flagValue{s},
		DefValue: s.text(),
	}
	return s
}

// text returns the value in the spelling of a flag.
func (s *Setting) text() string {
	if !s.list {
		return s.texts()[0]
	}
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	_ = w.Write(s.texts()) // a buffer does not fail
	w.Flush()
	return strings.TrimSuffix(text.String(), "\n")
}

// flagValue keeps the texts of a flag until the settings are read, so that wrong ones are reported
// together with all other mistakes.
type flagValue struct{ *Setting }

func (v flagValue) Set(text string) error {
	v.typed = append(v.typed, text)
	return nil
}

func (v flagValue) String() string { return v.text() }

func (v flagValue) Type() string { return v.flagType }

// Text is one line of text.
func Text(name string, target *string, doc string) *Setting {
	return newSetting(name, doc, target, textual(target, "a text, in quotes if it begins with # or looks like a number",
		"", cobra.ShellCompDirectiveNoFileComp))
}

// URL is a text that editors check as a URL.
func URL(name string, target *string, doc string) *Setting {
	return newSetting(name, doc, target, textual(target, "a URL", "uri", cobra.ShellCompDirectiveNoFileComp))
}

// File is the name of a file.
func File(name string, target *string, doc string) *Setting {
	return newSetting(name, doc, target, textual(target, "the name of a file", "", cobra.ShellCompDirectiveDefault))
}

// Folder is the name of a folder.
func Folder(name string, target *string, doc string) *Setting {
	return newSetting(name, doc, target, textual(target, "the name of a folder", "",
		cobra.ShellCompDirectiveFilterDirs))
}

// Secret is a text that is never shown. The value file:PATH stands for the text in a file.
func Secret(name string, target *string, doc string) *Setting {
	return Text(name, target, doc).asSecret()
}

// SecretURL is a URL that is never shown, because it may hold a password. An empty text is nil.
func SecretURL(name string, target **url.URL, doc string) *Setting {
	return newSetting(name, doc, target, address(target)).asSecret()
}

func (s *Setting) asSecret() *Setting {
	s.secret = true
	s.Doc += "; file:PATH reads it from a file"
	s.flag.Usage = s.Doc
	return s.Example(fromFile + "/run/secrets/" + s.Name)
}

// Switch is on or off.
func Switch(name string, target *bool, doc string) *Setting {
	s := newSetting(name, doc, target, onOff(target))
	s.flag.NoOptDefVal = "true"
	return s
}

// Number is a whole number of 1 or more. It can be 0 only when that is its default.
func Number(name string, target *int, doc string) *Setting {
	return newSetting(name, doc, target, wholeFrom(target, min(1, *target)))
}

// Size is a number of bytes, with or without a unit.
func Size(name string, target *int64, doc string) *Setting {
	return newSetting(name, doc, target, size(target))
}

// Duration is a duration in the syntax of Go. It can be 0 only when that is its default.
func Duration(name string, target *time.Duration, doc string) *Setting {
	parse := notZero
	if *target == 0 {
		parse = time.ParseDuration
	}
	return newSetting(name, doc, target, duration(target, parse, FormatDuration))
}

// DurationOrOff is a duration that 0 turns off. Off is stored as -1, because 0 means unset in a
// Config.
func DurationOrOff(name string, target *time.Duration, doc string) *Setting {
	return newSetting(name, doc, target, duration(target, orOff, func(d time.Duration) string {
		return FormatDuration(max(d, 0))
	}))
}

// Choice is one of a few words.
func Choice(name string, target *string, words []string, doc string) *Setting {
	return newSetting(name, doc, target, oneOf(target, words))
}

// Texts is a list of texts.
func Texts(name string, target *[]string, doc string) *Setting {
	return List(name, target, Verbatim("texts"), doc)
}

// Verbatim returns an item that is any text.
func Verbatim(expected string) Item[string] {
	return Item[string]{Parse: verbatim, Format: strings.Clone, Expected: expected}
}

// List is a list of items: a sequence in the file, a repeated flag, or separated by commas.
func List[T any](name string, target *[]T, item Item[T], doc string) *Setting {
	return newSetting(name, doc, target, listOf(target, item))
}

// Example sets the value in the example file, for a setting without a default. Only a list has
// several items.
func (s *Setting) Example(example ...string) *Setting {
	s.example = example
	return s
}

// DefaultText describes a default that depends on other settings.
func (s *Setting) DefaultText(defaultText string) *Setting {
	s.defaultText = defaultText
	return s
}

// HideQuery hides the query of a URL in output, because it can hold a secret.
func (s *Setting) HideQuery() *Setting {
	s.hideQuery = true
	return s
}

// OrSingle lets the only item of a list stand in the file without the list.
func (s *Setting) OrSingle() *Setting {
	list := s.schema
	s.single, s.schema = true, jsonschema.Schema{AnyOf: []*jsonschema.Schema{&list, list.Items}}
	return s
}

// Pattern sets the regular expression of the value in the JSON schema.
func (s *Setting) Pattern(pattern string) *Setting {
	s.pattern = pattern
	return s
}

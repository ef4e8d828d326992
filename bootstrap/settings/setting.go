// Package settings reads the configuration: flags, environment variables and one YAML file, in this
// order of precedence, over defaults. A setting has one flat name in three spellings:
// --access-token-ttl, PASTEPORT_ACCESS_TOKEN_TTL, and access-token-ttl: in the file. Help, shell
// completion, the output of "pasteport config", the JSON schema, the example file and the table in
// docs/settings.md come from the same Table.
//
// To add a setting, give it a field in service.Config and one entry in
// bootstrap/service/settings.go:
//
//	settings.Duration("ticket-ttl", &c.TicketTTL, "time to submit a consent page"),
//
// The value of the field when the Table is made is the default. Then run "go run
// ./bootstrap/settings/write" for docs/settings.md. The code that uses a value checks it:
// Table.Explain reports an oauth.Mistake about the field TicketTTL as one about ticket-ttl,
// in the spelling that was used. Start reading at Table and Setting.
package settings

import (
	"reflect"
	"time"

	"github.com/spf13/pflag"
)

// Setting can be set by a flag, an environment variable or a key of the file. Text, Number, List
// and the other constructors bind it to a variable.
type Setting struct {
	Name string
	Doc  string

	shape       shape
	flag        *pflag.Flag // holds the value from any source
	value       pflag.Value // of the flag
	mistyped    []mistyped  // on the command line
	address     uintptr     // of the variable
	example     []string
	defaultText string // describes an empty default
	pattern     string
	required    bool
	secret      bool
	hideQuery   bool     // the query of the URL may hold a secret
	fromFile    *Setting // names a file with the secret
	origin      origin
}

func newSetting(name, doc string, target any, shape shape, add func(*pflag.FlagSet)) *Setting {
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	add(flags)
	flag := flags.Lookup(name)
	flag.DefValue = flag.Value.String() // pflag formats lists and durations differently
	s := &Setting{
		Name:  name,
		Doc:   doc,
		shape: shape,
		flag:  flag,
		value: flag.Value,

		address: reflect.ValueOf(target).Pointer(),
	}
	flag.Value = typed{flag.Value, s}
	if list, ok := s.value.(pflag.SliceValue); ok {
		flag.Value = typedList{typed{s.value, s}, list}
	}
	return s
}

// typed records invalid values of the command line, to report them together with all other
// mistakes.
type typed struct {
	pflag.Value
	of *Setting
}

// mistyped is a text that is no value of its setting.
type mistyped struct {
	text   string
	reason error
}

func (t typed) Set(text string) error {
	if err := t.Value.Set(text); err != nil {
		t.of.mistyped = append(t.of.mistyped, mistyped{text, err})
	}
	return nil
}

func (t typed) setting() *Setting { return t.of }

type typedList struct {
	typed
	pflag.SliceValue
}

// Text is one line of text.
func Text(name string, target *string, doc string) *Setting {
	return newSetting(name, doc, target, text, func(f *pflag.FlagSet) { f.StringVar(target, name, *target, doc) })
}

// URL is a text that editors check as a URL.
func URL(name string, target *string, doc string) *Setting {
	return newSetting(name, doc, target, address, func(f *pflag.FlagSet) { f.StringVar(target, name, *target, doc) })
}

// File is the name of a file.
func File(name string, target *string, doc string) *Setting {
	return newSetting(name, doc, target, file, func(f *pflag.FlagSet) { f.StringVar(target, name, *target, doc) })
}

// Folder is the name of a folder.
func Folder(name string, target *string, doc string) *Setting {
	return newSetting(name, doc, target, folder, func(f *pflag.FlagSet) { f.StringVar(target, name, *target, doc) })
}

// Secret is a text that is never shown. NAME-file can name a file with the secret instead.
func Secret(name string, target *string, doc string) *Setting {
	s := Text(name, target, doc)
	s.secret, s.fromFile = true, File(name+"-file", new(string), "file that contains "+name).
		Example("/run/secrets/"+name)
	return s
}

// Switch is on or off.
func Switch(name string, target *bool, doc string) *Setting {
	return newSetting(name, doc, target, onOff, func(f *pflag.FlagSet) {
		f.VarPF(&toggle{target}, name, "", doc).NoOptDefVal = "true"
	})
}

// Number is a whole number of 1 or more. It can be 0 only when that is its default.
func Number(name string, target *int, doc string) *Setting {
	least := min(1, *target)
	return newSetting(name, doc, target, wholeFrom(least), func(f *pflag.FlagSet) {
		f.Var(&count{target, least}, name, doc)
	})
}

// Size is a number of bytes, with or without a unit.
func Size(name string, target *int64, doc string) *Setting {
	return newSetting(name, doc, target, bytesOrUnits, func(f *pflag.FlagSet) { f.Var(&size{target}, name, doc) })
}

// Duration is a duration in the syntax of Go. It can be 0 only when that is its default.
func Duration(name string, target *time.Duration, doc string) *Setting {
	value := &span{target: target, orZero: *target == 0}
	return newSetting(name, doc, target, duration, func(f *pflag.FlagSet) { f.Var(value, name, doc) })
}

// DurationOrOff is a duration that 0 turns off. Off is stored as -1, because 0 means unset in a
// Config.
func DurationOrOff(name string, target *time.Duration, doc string) *Setting {
	value := &span{target: target, orOff: true}
	return newSetting(name, doc, target, duration, func(f *pflag.FlagSet) { f.Var(value, name, doc) })
}

// Choice is one of a few words.
func Choice(name string, target *string, words []string, doc string) *Setting {
	return newSetting(name, doc, target, oneOf(words), func(f *pflag.FlagSet) {
		f.Var(&choice{target, words}, name, doc)
	})
}

// Texts is a list of texts.
func Texts(name string, target *[]string, doc string) *Setting {
	return List(name, target, Item[string]{Parse: func(s string) (string, error) {
		return s, nil
	}, Format: func(s string) string { return s }, Expected: "texts"}, doc)
}

// List is a list of items: a sequence in the file, a repeated flag, or separated by commas.
func List[T any](name string, target *[]T, item Item[T], doc string) *Setting {
	return newSetting(name, doc, target, listOf(item.Expected, item.Mapping), func(f *pflag.FlagSet) {
		f.Var(&list[T]{target: target, item: item}, name, doc)
	})
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
	s.shape = s.shape.orSingle()
	return s
}

// Pattern sets the regular expression of the value in the JSON schema.
func (s *Setting) Pattern(pattern string) *Setting {
	s.pattern = pattern
	return s
}

// Required writes the setting into the example file without a comment mark.
func (s *Setting) Required() *Setting {
	s.required = true
	return s
}

// Package credential defines the fields of which a person's credential for a site consists: one
// token by default, or several such as the address of the site, a user, and a key. Fields.Parse
// checks the values that a person has entered, and Values.Encode writes them as the one text that
// is sealed, fingerprinted and compared instead of a token; Decode reads it.
package credential

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/domain/seal"
)

// Token is the name of the field that every verifier can verify.
const Token = "token"

// Limits of the fields.
const (
	maxFields = 8
	maxValue  = 1024 // bytes of a field that is not the only one
	maxText   = 4096 // bytes of Values.Encode
)

// Field is one value of a credential.
type Field struct {
	Name     string
	Label    string // shown to people; the default is the name
	Help     string // shown below the field; "" for none
	Pattern  string // regular expression that the whole value matches; "" for any
	Default  string // shown in the field at first
	Secret   bool   // the value is not shown, and is removed from what is logged
	Optional bool
}

// Fields are the fields of a credential, in the order of the form. No fields stand for Single.
type Fields []Field

// Single returns the fields of a credential that is one token.
func Single() Fields { return Fields{{Name: Token, Secret: true}} }

// OrSingle returns the fields, or Single if there are none.
func (f Fields) OrSingle() Fields {
	if len(f) == 0 {
		return Single()
	}
	return f
}

// Names returns the names of the fields, or of Single.
func (f Fields) Names() (names []string) {
	for _, field := range f.OrSingle() {
		names = append(names, field.Name)
	}
	return names
}

// Find returns the field with the name; false if there is none.
func (f Fields) Find(name string) (Field, bool) {
	i := slices.IndexFunc(f, func(field Field) bool { return field.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return f[i], true
}

// Secrets returns the values of the secret fields.
func (f Fields) Secrets(values Values) (secrets []string) {
	for _, field := range f.OrSingle() {
		if value := values[field.Name]; field.Secret && value != "" {
			secrets = append(secrets, value)
		}
	}
	return secrets
}

// WithSecrets returns a copy of the values, with secret() for each value of a secret field.
func (f Fields) WithSecrets(values Values, secret func() string) Values {
	changed := Values{}
	maps.Copy(changed, values)
	for _, field := range f.OrSingle() {
		if field.Secret && values[field.Name] != "" {
			changed[field.Name] = secret()
		}
	}
	return changed
}

// Sample returns values for a check of the site, with secret() in each secret field.
func (f Fields) Sample(secret func() string) Values {
	values := Values{}
	for _, field := range f.OrSingle() {
		values[field.Name] = cmp.Or(field.Default, "pasteport")
	}
	return f.WithSecrets(values, secret)
}

var fieldName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// Check returns one error for each mistake, with its remedy.
func (f Fields) Check() []error {
	var mistakes []error
	if len(f) > maxFields {
		mistakes = append(mistakes, fmt.Errorf("there are %d fields: ask for %d at most", len(f), maxFields))
	}
	for i, field := range f {
		if err := field.check(); err != nil {
			mistakes = append(mistakes, fmt.Errorf("number %d: %w", i+1, err))
		}
		if _, found := f[:i].Find(field.Name); found {
			mistakes = append(mistakes,
				fmt.Errorf("number %d: the name %s is used twice: choose another", i+1, field.Name))
		}
	}
	if len(f) > 0 && !slices.ContainsFunc(f, func(field Field) bool { return field.Secret && !field.Optional }) {
		mistakes = append(mistakes,
			errors.New("no field is required and secret, so that anyone could enter a credential: mark the key "+
				"as secret"))
	}
	return mistakes
}

func (f Field) check() error {
	if !fieldName.MatchString(f.Name) {
		return errors.New("the name is not valid: use up to 32 lower-case letters, digits and underscores")
	}
	if f.Name == Token && !f.Secret {
		return errors.New("the field token is not secret: mark it as secret, or choose another name")
	}
	if _, err := regexp.Compile(f.Pattern); err != nil {
		return errors.New("the pattern is not a regular expression: write it in the syntax of RE2, " +
			"such as [a-z0-9]{32}")
	}
	if f.Secret && f.Default != "" {
		return errors.New("a secret field has a default, which every visitor would see: leave it out")
	}
	if _, err := f.parse(f.Default); f.Default != "" && err != nil {
		return errors.New("the default does not match the field's own pattern: change one of them")
	}
	return nil
}

// Reason is why a value is refused.
type Reason string

// The reasons.
const (
	Missing   Reason = "missing"
	Malformed Reason = "malformed"
	TooLong   Reason = "too long"
	Control   Reason = "with control characters"
	Issued    Reason = "a token that Pasteport issued to an app"
)

// ValueError reports the value of a field that is refused. It does not contain the value.
type ValueError struct {
	Field  Field
	Reason Reason
}

func (e *ValueError) Error() string { return "the field " + e.Field.Name + " is " + string(e.Reason) }

// Parse checks the values that a person has entered, and returns those that are not empty. Its
// error is a *ValueError about the first field that is wrong.
func (f Fields) Parse(entered func(name string) string) (Values, error) {
	values := Values{}
	for _, field := range f {
		value, err := field.parse(entered(field.Name))
		if err != nil {
			return nil, err
		}
		if value != "" {
			values[field.Name] = value
		}
	}
	if len(values.Encode()) > maxText {
		longest := slices.MaxFunc(f, func(a, b Field) int {
			return cmp.Compare(len(values[a.Name]), len(values[b.Name]))
		})
		return nil, &ValueError{longest, TooLong}
	}
	return values, nil
}

// Accept reports whether the fields accept the values. Those of an older connection may lack a
// field, or have one that was removed.
func (f Fields) Accept(values Values) bool {
	if len(f) == 0 {
		return len(values) == 1 && values[Token] != ""
	}
	for name := range values {
		if _, found := f.Find(name); !found {
			return false
		}
	}
	_, err := f.Parse(func(name string) string { return values[name] })
	return err == nil
}

// Required returns the fields that need a value.
func (f Fields) Required() Fields {
	return slices.DeleteFunc(slices.Clone(f), func(field Field) bool { return field.Optional })
}

// Select returns the values of the fields.
func (f Fields) Select(values Values) Values {
	selected := Values{}
	for _, name := range f.Names() {
		selected[name] = values[name]
	}
	return selected
}

func (f Field) parse(entered string) (string, error) {
	value := trimInvisible(entered)
	if value == "" {
		if f.Optional {
			return "", nil
		}
		return "", &ValueError{f, Missing}
	}
	if len(value) > maxValue {
		return "", &ValueError{f, TooLong}
	}
	if HasControl(value) {
		return "", &ValueError{f, Control}
	}
	if whole, _ := regexp.MatchString(`^(?:`+f.Pattern+`)$`, value); f.Pattern != "" && !whole {
		return "", &ValueError{f, Malformed}
	}
	return value, nil
}

// Values are the values of a credential by the name of their field.
type Values map[string]string

// manyFields begins a text that is not a lone token. No token begins with a control character.
const manyFields = "\x01"

// Encode returns the values as one text: a lone token as it is, as on a site without fields, and
// other values with their names and lengths, sorted by name. It leaves out empty values.
func (v Values) Encode() string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if v[name] != "" {
			texts = append(texts, name, v[name])
		}
	}
	if len(texts) == 2 && texts[0] == Token {
		return v[Token]
	}
	return manyFields + string(seal.PackTexts(texts...))
}

// Decode is the reverse of Encode. A text that is not encoded is a token.
func Decode(text string) Values {
	packed, many := strings.CutPrefix(text, manyFields)
	if !many {
		return Values{Token: text}
	}
	texts, err := seal.UnpackTexts([]byte(packed))
	if err != nil || len(texts)%2 != 0 {
		return Values{}
	}
	values := Values{}
	for field := range slices.Chunk(texts, 2) {
		values[field[0]] = field[1]
	}
	return values
}

package oauth

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Field is the path of a field in a Mistake, such as Limits.MaxSessions. It starts at the struct
// that is checked, or at Config if it begins with OfConfig.
type Field string

// OfConfig begins the path of a field of Config in a mistake about another struct.
const OfConfig = "oauth.Config."

// Mistake is an error in a Config. Its text names the fields, the problem and the remedy.
type Mistake struct {
	sentence string
	values   []any
}

// NewMistake formats a sentence as fmt.Sprintf does. WithNames can replace the values that are a
// Field.
func NewMistake(sentence string, values ...any) *Mistake { return &Mistake{sentence, values} }

func (m *Mistake) Error() string {
	return m.WithNames(func(field Field) string { return string(field) })
}

// Unwrap returns the errors among the values.
func (m *Mistake) Unwrap() (causes []error) {
	for _, value := range m.values {
		if cause, ok := value.(error); ok {
			causes = append(causes, cause)
		}
	}
	return causes
}

// WithNames returns the sentence with other names for the fields, such as those of flags.
func (m *Mistake) WithNames(name func(Field) string) string {
	return fmt.Sprintf(m.sentence, m.replaced(func(field Field) any { return name(field) })...)
}

func (m *Mistake) replaced(replacement func(Field) any) []any {
	values := slices.Clone(m.values)
	for i, value := range values {
		if field, ok := value.(Field); ok {
			values[i] = replacement(field)
		}
	}
	return values
}

// Within returns the mistakes of a struct as those of the struct that has it in the field outer.
func Within(outer Field, err error) error { return Prefixed(outer+".", err) }

// Prefixed returns the mistakes with a prefix for each field.
func Prefixed(prefix Field, err error) error {
	switch e := err.(type) { //nolint:errorlint // the tree is walked by hand
	case *Mistake:
		return &Mistake{e.sentence, e.replaced(func(inner Field) any {
			if strings.HasPrefix(string(inner), OfConfig) {
				return inner
			}
			return prefix + inner
		})}
	case interface{ Unwrap() []error }:
		branches := slices.Clone(e.Unwrap())
		for i, branch := range branches {
			branches[i] = Prefixed(prefix, branch)
		}
		return errors.Join(branches...)
	}
	return err
}

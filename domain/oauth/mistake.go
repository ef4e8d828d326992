package oauth

import (
	"fmt"
	"strings"
)

// Mistake is an error in a field of a Config or of options. Its text names the field, the problem
// and the remedy.
type Mistake struct {
	Field string // its name, such as Limits.MaxSessions, or that of its setting
	err   error
}

// NewMistake formats what follows the name of the field, as fmt.Errorf does.
func NewMistake(field, sentence string, values ...any) *Mistake {
	return &Mistake{field, fmt.Errorf(sentence, values...)}
}

func (m *Mistake) Error() string { return m.Of(m.Field) }

func (m *Mistake) Unwrap() error { return m.err }

// Of returns the text with another name for the field, such as that of a flag.
func (m *Mistake) Of(name string) string {
	text := m.err.Error()
	if strings.HasPrefix(text, ":") {
		return name + text
	}
	return name + " " + text
}

// mistakes are the errors that a check has found.
type mistakes []error

// add adds a Mistake, as NewMistake formats it.
func (m *mistakes) add(field, sentence string, values ...any) {
	*m = append(*m, NewMistake(field, sentence, values...))
}

package oauth

import (
	"fmt"
	"slices"
)

// Field is the name of a field of Config in a Mistake.
type Field string

// Mistake says what is wrong with a Config, by the names of its fields and with the remedy (F9).
type Mistake struct {
	sentence string
	values   []any
}

// NewMistake formats a sentence; those of its values that are a Field can be spelled in another way later.
func NewMistake(sentence string, values ...any) *Mistake { return &Mistake{sentence, values} }

func (m *Mistake) Error() string { return m.Spelled(func(field Field) string { return string(field) }) }

// Spelled is the same sentence for people who know the settings by other names, such as flags.
func (m *Mistake) Spelled(name func(Field) string) string {
	values := slices.Clone(m.values)
	for i, value := range values {
		if field, ok := value.(Field); ok {
			values[i] = name(field)
		}
	}
	return fmt.Sprintf(m.sentence, values...)
}

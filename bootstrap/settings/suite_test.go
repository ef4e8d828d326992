package settings

import (
	"errors"
	"testing"
	"time"

	"github.com/pasteport/pasteport/features/suite"
)

func TestSettings(t *testing.T) {
	suite.Run(t, "Settings")
}

// sample has a setting of every kind.
type sample struct {
	Text     string        `set:"a-text" group:"Every kind" doc:"a text"`
	Secret   string        `set:"a-secret" group:"Every kind" secret:"true" doc:"a secret"`
	Switch   bool          `set:"a-switch" group:"Every kind" doc:"a switch"`
	Choice   string        `set:"a-choice" group:"Every kind" default:"red" choices:"red,blue" doc:"a choice"`
	Number   int           `set:"a-number" group:"Every kind" default:"7" min:"1" doc:"a number"`
	Size     int64         `set:"a-size" group:"Every kind" default:"4MiB" min:"1KiB" max:"1GiB" doc:"a size"`
	SomeTTL  time.Duration `set:"a-time" group:"Every kind" default:"1h" min:"1m" max:"2h" doc:"a time"`
	Pause    time.Duration `set:"a-pause" group:"Every kind" min:"1m" max:"2h" off:"true" doc:"a pause"`
	Texts    []string      `set:"some-texts" group:"Every kind" doc:"some texts"`
	Mappings []person      `set:"people" group:"Every kind" allowed:"people" doc:"people"`
}

type person struct {
	Name string   `json:"name" yaml:"name" jsonschema:"the name"`
	Age  int      `json:"age,omitempty" yaml:"age,omitempty" jsonschema:"in years"`
	Tags []string `json:"tags,omitempty" yaml:"tags,omitempty" jsonschema:"words"`
}

func (s *sample) table() *Table { return NewTable(s, "Every kind") }

// readText reads the settings from the text of a file.
func (t *Table) readText(text []byte) error {
	entries, err := t.parse("f.yaml", text)
	mistakes := []error{err}
	for _, s := range t.settings {
		mistakes = append(mistakes, s.read(entries[s.name], true))
	}
	return errors.Join(mistakes...)
}

package settings

import (
	"testing"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

func TestSettings(t *testing.T) {
	suite.Run(t, "Settings")
}

// sample has a setting of every kind.
type sample struct {
	text, file, folder, url, secret, choice string
	on                                      bool
	long, orZero                            time.Duration
	texts, oneOrMore                        []string
	mappings                                []person
}

type person struct {
	Name string   `json:"name" jsonschema:"the name"`
	Age  int      `json:"age,omitempty"`
	Tags []string `json:"tags,omitempty"`
}

func (s *sample) table() *Table {
	s.long, s.choice = time.Hour, "red"
	return NewTable(s, map[oauth.Field]oauth.Field{"SomeTTL": "long"}, Group{Title: "Every kind", Settings: []*Setting{
		Text("a-text", &s.text, "a text"), File("a-file", &s.file, "a file"), Folder("a-folder", &s.folder, "a folder"),
		URL("a-url", &s.url, "a URL"),
		Secret("a-secret", &s.secret, "a secret"), Switch("a-switch", &s.on, "a switch"),
		Choice("a-choice", &s.choice, []string{"red", "blue"}, "a choice"),
		Duration("a-time", &s.long, "a time"), Duration("a-pause", &s.orZero, "a pause"),
		Texts("some-texts", &s.texts, "some texts"),
		Texts("one-or-more", &s.oneOrMore, "one text or more").OrSingle(),
		List("people", &s.mappings, Mapping[person]("people"), "people").OrSingle(),
	}})
}

// readText reads the settings from the text of a file.
func (t *Table) readText(text []byte) []error {
	document, err := t.parse("f.yaml", text)
	mistakes := []error{err}
	for s := range t.All() {
		mistakes = append(mistakes, s.read(document))
	}
	return mistakes
}

package settings

import (
	"fmt"
	"io"
	"strings"
)

// WriteReference prints a table in Markdown with every setting, its default and its doc.
func (t *Table) WriteReference(w io.Writer) error {
	var text strings.Builder
	text.WriteString("| setting | default | |\n|---|---|---|\n")
	for _, group := range t.groups {
		fmt.Fprintf(&text, "| **%s** | | |\n", group.Title)
		for _, s := range group.all() {
			fmt.Fprintf(&text, "| `%s` | %s | %s |\n", s.Name, s.standard(), strings.ReplaceAll(s.Doc, "|", "\\|"))
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func (s *Setting) standard() string {
	switch value := s.flag.DefValue; {
	case s.defaultText != "":
		return s.defaultText
	case value == "" && s.shape.tags[0] != "!!bool":
		return "none"
	case value == "false":
		return "off"
	default:
		return "`" + value + "`"
	}
}

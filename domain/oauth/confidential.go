package oauth

import (
	"fmt"
	"io"
)

const redacted = "[redacted]"

// confidential is text that no formatter, encoder or logger prints (B15). It hides behind a pointer because fmt looks into
// unexported fields without asking their methods.
type confidential struct{ text *string }

func conceal(text string) confidential { return confidential{&text} }

// Reveal returns the text itself; call it only where the text is put to its use.
func (c confidential) Reveal() string {
	if c.text == nil {
		return ""
	}
	return *c.text
}

// Format hides the text from every verb of fmt.
func (c confidential) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText hides the text from JSON, XML and log/slog.
func (c confidential) MarshalText() ([]byte, error) { return []byte(redacted), nil }

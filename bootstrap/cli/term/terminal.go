// Package term has the terminal functions of the commands: a Terminal with colours, usage errors, the prompt for a token, and output
// formats.
package term

import (
	"fmt"
	"io"
	"os"

	"github.com/mattn/go-colorable"
	"github.com/mattn/go-isatty"
)

// Terminal writes text for a person. Colour is set only when Out is a terminal and NO_COLOR is not set.
type Terminal struct {
	Out    io.Writer
	Colour bool
}

// New returns a Terminal for out, with colours if out is a terminal.
func New(out io.Writer) Terminal {
	file, ok := out.(*os.File)
	if !ok || !isatty.IsTerminal(file.Fd()) || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return Terminal{Out: out}
	}
	return Terminal{Out: colorable.NewColorable(file), Colour: true}
}

// Printf writes formatted text.
func (t Terminal) Printf(format string, values ...any) { _, _ = fmt.Fprintf(t.Out, format, values...) }

// ClearLine erases the progress line of a colour terminal; others print no progress.
func (t Terminal) ClearLine() {
	if t.Colour {
		t.Printf("\r\x1b[K")
	}
}

// Bold returns the text in bold.
func (t Terminal) Bold(text string) string { return t.styled("1", text) }

// Red returns the text in red, for failures.
func (t Terminal) Red(text string) string { return t.styled("31", text) }

// Green returns the text in green, for success.
func (t Terminal) Green(text string) string { return t.styled("32", text) }

func (t Terminal) styled(style, text string) string {
	if !t.Colour {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

package service

import (
	"fmt"
	"io"
	"os"

	"github.com/mattn/go-colorable"
	"github.com/mattn/go-isatty"
)

// terminal is where a person reads along, in colour only if it is a terminal and the person has not said NO_COLOR.
type terminal struct {
	out    io.Writer
	colour bool
}

func newTerminal(out io.Writer) terminal {
	file, ok := out.(*os.File)
	if !ok || !isatty.IsTerminal(file.Fd()) || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return terminal{out: out}
	}
	return terminal{out: colorable.NewColorable(file), colour: true}
}

func (t terminal) say(format string, values ...any) { _, _ = fmt.Fprintf(t.out, format, values...) }

// clearLine takes back a line that says how far something has come.
func (t terminal) clearLine() {
	if t.colour {
		t.say("\r\x1b[K")
	}
}

func (t terminal) bold(text string) string  { return t.styled("1", text) }
func (t terminal) red(text string) string   { return t.styled("31", text) }
func (t terminal) green(text string) string { return t.styled("32", text) }

func (t terminal) styled(style, text string) string {
	if !t.colour {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

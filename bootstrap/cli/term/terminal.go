// Package term has the terminal functions of the commands: a Terminal with colours, usage errors,
// the prompt for a token, and output formats.
package term

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/mattn/go-colorable"
	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	xterm "golang.org/x/term"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Terminal writes text for a person, with colours if Colour is set.
type Terminal struct {
	Out    io.Writer
	Colour bool
}

// New returns a Terminal for out, with colours if out is a terminal and the environment does not
// forbid them (NO_COLOR, or TERM=dumb).
func New(out io.Writer) Terminal {
	file, ok := out.(*os.File)
	if !ok || !isatty.IsTerminal(file.Fd()) || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return Terminal{Out: out}
	}
	return Terminal{Out: colorable.NewColorable(file), Colour: true}
}

// Printf writes formatted text.
func (t Terminal) Printf(format string, values ...any) { _, _ = fmt.Fprintf(t.Out, format, values...) }

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

// Count returns the number with the noun, in the plural unless it is one.
func Count(number int, noun string) string {
	if number != 1 {
		noun += "s"
	}
	return strconv.Itoa(number) + " " + noun
}

// UsageError is a mistake in the command line; the program exits with code 2.
type UsageError struct{ error }

// Usage marks an error as a mistake in the command line.
func Usage(err error) error { return UsageError{err} }

// Usagef is Usage for a formatted error.
func Usagef(format string, values ...any) error { return UsageError{fmt.Errorf(format, values...)} }

// NoArguments refuses arguments. The error does not contain them, because one may be a secret whose
// flag is missing; only on and off are safe to repeat.
func NoArguments(command *cobra.Command, args []string) error {
	if len(args) > 0 && (args[0] == "on" || args[0] == "off") {
		return Usagef("unexpected argument %q: write it as the flag's value, --name=%[1]s", args[0])
	}
	if len(args) > 0 {
		return Usagef("unexpected argument: %q takes flags only, each as --name=value", command.CommandPath())
	}
	return nil
}

// OnlyCommands refuses the arguments of a command that only has subcommands, and suggests those
// with a similar name. The error does not contain the arguments, like that of NoArguments.
func OnlyCommands(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	near := command.SuggestionsFor(args[0])
	if len(near) == 0 {
		return Usagef("unknown command: no command of %q has a similar name", command.CommandPath())
	}
	for i, name := range near {
		near[i] = strconv.Quote(command.CommandPath() + " " + name)
	}
	return Usagef("unknown command: did you mean %s?", strings.Join(near, " or "))
}

// OneArgument accepts one argument. For another number, the usage error is the text.
func OneArgument(text string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usagef("%s", text)
		}
		return nil
	}
}

// PrintJSON writes value as indented JSON, escaped by EscapeJSON.
func PrintJSON(out io.Writer, value any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("printing JSON: %w", err)
	}
	_, err := io.WriteString(out, EscapeJSON(text.String()))
	return err
}

// EscapeJSON escapes the unprintable characters in the texts of JSON, because a terminal would obey
// some of them, such as direction marks in the name of a client.
func EscapeJSON(document string) string {
	var escaped strings.Builder
	for _, r := range document {
		if r < ' ' || unicode.IsPrint(r) { // encoded JSON has control characters only between texts
			escaped.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			_, _ = fmt.Fprintf(&escaped, `\u%04x`, unit)
		}
	}
	return escaped.String()
}

// Time formats a time in the local zone.
func Time(at time.Time) string { return at.Local().Format(time.DateTime) }

// Quote puts a word that has more than letters, digits and a few signs into quotes, so that a POSIX
// shell reads it as it is.
func Quote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Table prints lines with aligned columns, a thousand at a time with a header, because it has to
// keep lines in memory until it knows the widths of their columns.
type Table struct {
	columns *tabwriter.Writer
	header  []string
	lines   int
}

// NewTable returns a table. A table without a row does not print its header.
func NewTable(out io.Writer, header ...string) *Table {
	return &Table{columns: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), header: header}
}

// Row prints a line. It replaces characters that do not print, because clients and sites choose
// names, and an empty text by a dash. Flush returns its error.
func (t *Table) Row(cells ...string) {
	if t.lines%1000 == 0 {
		_ = t.columns.Flush()
		_, _ = fmt.Fprintln(t.columns, strings.Join(t.header, "\t"))
	}
	t.lines++
	for i, cell := range cells {
		cells[i] = cmp.Or(strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return unicode.ReplacementChar
		}, cell), "-")
	}
	_, _ = fmt.Fprintln(t.columns, strings.Join(cells, "\t"))
}

// Flush prints what is waiting.
func (t *Table) Flush() error {
	if err := t.columns.Flush(); err != nil {
		return fmt.Errorf("printing a table: %w", err)
	}
	return nil
}

// Cut returns a text that has at most width characters. One that it has shortened ends with "…".
func Cut(text string, width int) string {
	characters := []rune(text)
	if len(characters) <= width {
		return text
	}
	return string(characters[:width-1]) + "…"
}

// ReadToken reads one token; on a terminal, without echo. Like the consent page, it accepts quotes,
// a header name or "Bearer" around the token.
func ReadToken(ctx context.Context, in io.Reader, prompt io.Writer) (oauth.HostToken, error) {
	text, err := readTyped(ctx, in, prompt)
	if err != nil {
		return oauth.HostToken{}, fmt.Errorf("reading the token: %w", err)
	}
	if strings.ContainsAny(strings.TrimSpace(text), "\r\n") {
		return oauth.HostToken{}, errors.New("reading the token: there is more than one line: give one token at a time")
	}
	token, err := oauth.ParseHostToken(text)
	if refused := new(oauth.Error); errors.As(err, &refused) {
		return oauth.HostToken{}, fmt.Errorf("reading the token: %s: copy the token alone, in one piece",
			refused.Description)
	}
	return token, err
}

func readTyped(ctx context.Context, in io.Reader, prompt io.Writer) (string, error) {
	if file, ok := in.(*os.File); ok && xterm.IsTerminal(int(file.Fd())) {
		_, _ = fmt.Fprint(prompt, "Token (it is not shown): ")
		defer func() { _, _ = fmt.Fprintln(prompt) }()
		return readHidden(ctx, int(file.Fd()))
	}
	// The limit exceeds the longest valid token, so that ParseHostToken can refuse a longer one.
	piped, err := io.ReadAll(io.LimitReader(in, 8<<10))
	return string(piped), err
}

// readHidden reads a line without echo. It restores the terminal also after Ctrl-C.
func readHidden(ctx context.Context, terminal int) (string, error) {
	before, err := xterm.GetState(terminal)
	if err != nil {
		return "", err
	}
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := xterm.ReadPassword(terminal)
		read <- line{text, err}
	}()
	select {
	case typed := <-read:
		return string(typed.text), typed.err
	case <-ctx.Done():
		return "", errors.Join(ctx.Err(), xterm.Restore(terminal, before))
	}
}

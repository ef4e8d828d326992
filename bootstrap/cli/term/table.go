package term

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// linesAligned is the number of lines whose columns are aligned, because the widths need all of
// them in memory.
const linesAligned = 1000

// Table prints lines with aligned columns.
type Table struct {
	columns *tabwriter.Writer
	header  []string
	lines   int
}

// NewTable returns a table, which prints its header with the first row.
func NewTable(out io.Writer, header ...string) *Table {
	return &Table{columns: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), header: header}
}

// Row prints a line. It replaces characters that do not print, because clients and sites choose
// names, and an empty text by a dash. Flush returns its error.
func (t *Table) Row(cells ...string) {
	if t.lines%linesAligned == 0 {
		_ = t.columns.Flush()
		_, _ = fmt.Fprintln(t.columns, strings.Join(t.header, "\t"))
	}
	t.lines++
	for i, cell := range cells {
		cells[i] = OrDash(strings.Map(printable, cell))
	}
	_, _ = fmt.Fprintln(t.columns, strings.Join(cells, "\t"))
}

func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
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

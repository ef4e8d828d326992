package main

import (
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// mutation is a row whose text has been found in the product.
type mutation struct {
	row
	match
}

// match is where a function contains a text.
type match struct {
	function
	from, to int // in the text of the file
}

// body returns the mutated body of the function.
func (m mutation) body() string {
	return m.file.text[m.start:m.from] + m.after + m.file.text[m.to:m.end]
}

// locate finds every row in the product. Its error names each row that does not match exactly once.
func (p product) locate(rows []row) (found []mutation, err error) {
	var stale []error
	for _, r := range rows {
		m, err := p.find(r)
		found, stale = append(found, m), append(stale, err)
	}
	return found, errors.Join(stale...)
}

func (p product) find(r row) (mutation, error) {
	functions := p[r.in]
	found := matches(functions, r.before)
	switch {
	case strings.Trim(r.before, ";") != r.before: // the match would be without it
		return mutation{}, fmt.Errorf("mutations.tsv:%d: %q begins or ends with a semicolon", r.line, r.before)
	case len(found) == 1:
		return mutation{r, found[0]}, nil
	case len(functions) == 0:
		return mutation{}, fmt.Errorf("mutations.tsv:%d: the product has no %s%s", r.line, r.in, p.hint(r))
	}
	return mutation{}, fmt.Errorf("mutations.tsv:%d: %s contains %q %d times, want once%s",
		r.line, r.in, r.before, len(found), p.hint(r))
}

// hint names the other functions with the text of a row, because the code may have moved.
func (p product) hint(r row) string {
	var others []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if name != r.in && len(matches(p[name], r.before)) == 1 {
			others = append(others, name)
		}
	}
	if len(others) == 0 {
		return ""
	}
	return "; it is in " + strings.Join(others[:min(len(others), 5)], ", ")
}

// matches returns where the functions contain the text, whatever the formatting.
func matches(functions []function, text string) (found []match) {
	wanted := squeeze(text).text
	for _, f := range functions {
		squeezed := squeeze(withoutComments(f.file.text[f.start:f.end]))
		for at := 0; wanted != ""; {
			next := strings.Index(squeezed.text[at:], wanted)
			if next < 0 {
				break
			}
			at += next + len(wanted)
			first, last := squeezed.offsets[at-len(wanted)], squeezed.offsets[at-1]
			found = append(found, match{f, f.start + first, f.start + last + 1})
		}
	}
	return found
}

// squeezed is code without all that a change of the line width changes.
type squeezed struct {
	text    string
	offsets []int // of each byte in the original code
}

// brackets close lists, in which the last element on a line of its own has a comma.
const brackets = ")]}"

// splitString is what remains between the halves of a string on two lines.
const splitString = `"+"`

// squeeze removes white space, semicolons, commas before closing brackets, and the plus signs
// between strings. It treats the inside of strings like code, so a text can begin or end in one.
func squeeze(code string) squeezed {
	var text []byte
	var offsets []int
	for i := range len(code) {
		if strings.ContainsRune(" \t\r\n;", rune(code[i])) {
			continue
		}
		if last := len(text) - 1; last >= 0 && text[last] == ',' && strings.IndexByte(brackets, code[i]) >= 0 {
			text, offsets = text[:last], offsets[:last]
		}
		text, offsets = append(text, code[i]), append(offsets, i)
		if strings.HasSuffix(string(text[max(0, len(text)-len(splitString)):]), splitString) {
			text, offsets = text[:len(text)-len(splitString)], offsets[:len(text)-len(splitString)]
		}
	}
	return squeezed{string(text), offsets}
}

// withoutComments replaces comments with spaces, so that everything else keeps its offset.
func withoutComments(code string) string {
	text := []byte(code)
	files := token.NewFileSet()
	in := files.AddFile("", files.Base(), len(text))
	var tokens scanner.Scanner
	tokens.Init(in, text, nil, scanner.ScanComments)
	for {
		at, kind, comment := tokens.Scan()
		switch kind {
		case token.EOF:
			return string(text)
		case token.COMMENT:
			start := in.Offset(at)
			copy(text[start:], strings.Repeat(" ", len(comment)))
		}
	}
}

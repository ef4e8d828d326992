package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// gapFile keeps the number of lost calls while an audit file cannot be written, also when the
// process ends before it can be written again. It is written in advance, full of blanks, because a
// full disk still lets a file be overwritten.
type gapFile string

// gapSize is enough for the longest event of lost calls.
const gapSize = 256

// gapOf returns the gap file of an audit file. The dot keeps it out of patterns such as
// calls.jsonl*.
func gapOf(path string) gapFile {
	return gapFile(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lost"))
}

// read returns the event of lost calls, with 0 lines for none.
func (g gapFile) read() (lost eventLine, err error) {
	text, err := os.ReadFile(string(g))
	if errors.Is(err, fs.ErrNotExist) {
		return lost, nil
	}
	if err != nil {
		return lost, fmt.Errorf("reading the number of lost calls: %w", err)
	}
	text = bytes.Trim(text, " \n\x00") // zeros are what some file systems leave after a power failure
	if len(text) == 0 {
		return lost, nil
	}
	if err := json.Unmarshal(text, &lost); err != nil || lost.Event != eventLost || lost.Lines < 1 {
		return eventLine{}, fmt.Errorf("reading the number of lost calls: %s has other content", string(g))
	}
	return lost, nil
}

// keep replaces the content by an event of lost calls, or by blanks if it has none.
func (g gapFile) keep(lost eventLine) error {
	var text []byte
	if lost.Lines > 0 {
		text = encode(lost)
	}
	file, err := os.OpenFile(string(g), os.O_WRONLY|os.O_CREATE, ownerOnly)
	if err != nil {
		return fmt.Errorf("keeping the number of lost calls: %w", err)
	}
	_, err = fmt.Fprintf(file, "%-*s\n", gapSize-1, text)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("keeping the number of lost calls: %w", err)
	}
	return nil
}

// Pending returns a note on the calls that could not be written to an audit file, and that it does
// not report yet.
func Pending(path string) (Finding, bool) {
	lost, err := gapOf(path).read()
	switch {
	case err != nil:
		return Finding{path, 0, err.Error()}, true
	case lost.Lines > 0:
		text := fmt.Sprintf("calls after its last line that could not be written: %d from %s to %s",
			lost.Lines, lost.Since, lost.Time)
		return Finding{path, 0, text}, true
	}
	return Finding{}, false
}

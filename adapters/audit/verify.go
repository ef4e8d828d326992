package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Source is a file to verify.
type Source struct {
	Name string
	io.Reader
}

// Finding is something that Verify found at a line.
type Finding struct {
	File string
	Line int // 1 for the first; 0 for the whole file
	Text string
}

// String returns the finding as FILE:LINE: TEXT.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.Text
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text)
}

// Report is the result of Verify.
type Report struct {
	Lines       int
	First, Last int64  // numbers of the first and the last line in the chain
	Hash        string // of the last line
	Problems    []Finding
	Notes       []Finding // events such as a line that was cut off by a crash
}

// Verify checks the chains of the lines in files, which it sorts by the times of their first lines.
// A chain has no key, so an attacker can rewrite all of it; only a hash from another place shows
// that. expect is the hash that the last line must have, "" for any.
func Verify(expect string, sources ...Source) (Report, error) {
	first := map[Source]sealedLine{}
	for i, source := range sources {
		reader := bufio.NewReaderSize(source, 64<<10)
		begin, _ := reader.Peek(64 << 10)
		line, _, _ := bytes.Cut(begin, []byte("\n"))
		sealed, _ := parseSealed(line) // a line that was changed still has a time and a number
		sources[i].Reader = reader
		first[sources[i]] = sealed
	}
	slices.SortStableFunc(sources, func(a, b Source) int {
		return cmp.Or(first[a].Time.Compare(first[b].Time), cmp.Compare(first[a].Seq, first[b].Seq))
	})
	v := verifier{begun: map[string]bool{}}
	for _, source := range sources {
		v.file, v.line = source.Name, 0
		if err := v.read(source.Reader.(*bufio.Reader)); err != nil {
			return v.report, fmt.Errorf("reading %s: %w", source.Name, err)
		}
	}
	v.report.Last, v.report.Hash = v.last.Seq, v.last.Hash
	if expect != "" && expect != v.last.Hash {
		v.line = 0
		v.problem("the last line does not have the expected hash: lines after it are missing, or the chain was " +
			"written anew")
	}
	return v.report, nil
}

// verifier is at a line of a file.
type verifier struct {
	report Report
	file   string
	line   int
	last   link
	begun  map[string]bool // hashes of the first lines of chains
}

func (v *verifier) problem(format string, args ...any) {
	v.report.Problems = append(v.report.Problems, Finding{v.file, v.line, fmt.Sprintf(format, args...)})
}

func (v *verifier) note(format string, args ...any) {
	v.report.Notes = append(v.report.Notes, Finding{v.file, v.line, fmt.Sprintf(format, args...)})
}

func (v *verifier) read(reader *bufio.Reader) error {
	for {
		line, err := reader.ReadBytes('\n')
		isTorn := errors.Is(err, io.EOF)
		switch {
		case isTorn && len(line) == 0:
			return nil
		case err != nil && !isTorn:
			return err
		}
		v.line++
		v.report.Lines++
		sealed, err := parseSealed(bytes.TrimSuffix(line, []byte("\n")))
		switch {
		case err == nil:
			v.follow(sealed)
		case !isTorn:
			v.problem("%s", err)
			v.last = link{cmp.Or(sealed.Seq, v.last.Seq+1), sealed.Hash} // the hash is "" if it cannot be read
		}
		if isTorn { // by a crash, or by a service that writes at this moment
			v.note("the last line is cut off: the service removes it at its next start, and reports that in the file")
		}
	}
}

// follow checks that a line with a valid hash follows the line before it.
func (v *verifier) follow(sealed sealedLine) {
	if v.line == 1 && sealed.Event != eventFile {
		v.problem("the first line of the file is missing")
	}
	begins, isFirst := sealed.Seq == 1 && *sealed.Prev == "", v.report.Lines == 1
	switch expected := v.last.Seq + 1; {
	case isFirst && sealed.Seq > 1:
		v.note("it begins with number %d: the lines before it are in older files", sealed.Seq)
	case isFirst && !begins:
		v.problem("the first line carries the hash of a line before it")
	case v.begun[sealed.Hash]:
		v.problem("its chain has begun before: the file was put in again")
	case !isFirst && begins && v.line == 1 && sealed.Event == eventFile:
		v.note("another chain begins: the service was started without a file at its path")
	case sealed.Seq > expected:
		v.problem("the chain has a gap before it: numbers %d to %d are missing", expected, sealed.Seq-1)
	case sealed.Seq < expected:
		v.problem("it is number %d after number %d: it was moved, or put in again", sealed.Seq, v.last.Seq)
	case *sealed.Prev != v.last.Hash && v.last.Hash != "":
		v.problem("the line before it was replaced: this line carries another hash of it")
	}
	if isFirst {
		v.report.First = sealed.Seq
	}
	if begins {
		v.begun[sealed.Hash] = true
	}
	v.last = sealed.link
	if sealed.Event == eventTorn {
		v.note("a line of %d bytes after the one before was cut off by a crash", sealed.Bytes)
	}
}

package audit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// tail is the end of a file: its last complete line, and what follows it without a line feed.
type tail struct {
	last []byte // without its line feed; nil for none
	torn []byte
}

const tailChunk = 64 << 10

// readTail reads the end of a file backwards.
func readTail(file *os.File) (t tail, err error) {
	info, err := file.Stat()
	if err != nil {
		return t, fmt.Errorf("reading an audit file: %w", err)
	}
	var text []byte
	for at := info.Size(); at > 0 && bytes.Count(text, []byte("\n")) < 2; {
		chunk := make([]byte, min(tailChunk, at))
		at -= int64(len(chunk))
		if _, err := file.ReadAt(chunk, at); err != nil && !errors.Is(err, io.EOF) {
			return t, fmt.Errorf("reading an audit file: %w", err)
		}
		text = append(chunk, text...)
	}
	end := bytes.LastIndexByte(text, '\n')
	t.torn = text[end+1:]
	if end >= 0 {
		t.last = text[bytes.LastIndexByte(text[:end], '\n')+1 : end]
	}
	return t, nil
}

// lastLinkOf returns the link of the last line of the newest file that was renamed from path, as
// logrotate names it.
func lastLinkOf(path string) (link, error) {
	newest, err := newestRenamed(path)
	if err != nil || newest == "" {
		return link{}, err
	}
	file, err := os.Open(newest)
	if err != nil {
		return link{}, fmt.Errorf("reading a renamed audit file: %w", err)
	}
	defer func() { _ = file.Close() }()
	t, err := readTail(file)
	if err != nil {
		return link{}, err
	}
	sealed, err := parseSealed(t.last)
	if err != nil {
		return link{}, nil //nolint:nilerr // a file without a chain has none to continue
	}
	return sealed.link, nil
}

// renamed matches what logrotate appends to the name of a file, such as .1 or -20260131.
var renamed = regexp.MustCompile(`^[-.][0-9]`)

// newestRenamed returns the newest uncompressed file that was renamed from the path, "" for none.
func newestRenamed(path string) (newest string, err error) {
	folder, base := filepath.Split(path)
	entries, err := os.ReadDir(cmp.Or(folder, "."))
	if err != nil {
		return "", fmt.Errorf("looking for renamed audit files: %w", err)
	}
	var latest time.Time
	for _, entry := range entries {
		suffix, isOurs := strings.CutPrefix(entry.Name(), base)
		if !isOurs || !renamed.MatchString(suffix) || strings.HasSuffix(suffix, ".gz") {
			continue
		}
		name := filepath.Join(folder, entry.Name())
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if newest == "" || cmp.Or(info.ModTime().Compare(latest), cmp.Compare(name, newest)) > 0 {
			newest, latest = name, info.ModTime()
		}
	}
	return newest, nil
}

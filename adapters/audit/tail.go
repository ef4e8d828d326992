package audit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// lastLinkOf returns the place of the last line of the newest file that was renamed from path, in
// any of the ways of this package and of logrotate.
func lastLinkOf(path string) (link, error) {
	var renamed []string
	for _, separator := range []string{"-", "."} {
		found, err := filepath.Glob(globEscaped(path) + separator + "[0-9]*")
		if err != nil {
			return link{}, fmt.Errorf("looking for renamed audit files: %w", err)
		}
		renamed = append(renamed, found...)
	}
	newest := ""
	var newestInfo os.FileInfo
	for _, name := range renamed {
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() || strings.HasSuffix(name, ".gz") {
			continue
		}
		if newestInfo == nil || cmp.Or(info.ModTime().Compare(newestInfo.ModTime()), cmp.Compare(name, newest)) > 0 {
			newest, newestInfo = name, info
		}
	}
	if newest == "" {
		return link{}, nil
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

func globEscaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// rotatedFormat is the time in the name of a rotated file. Sorted by name, the files are in the
// order of their lines.
const rotatedFormat = "20060102T150405.000000Z"

// rotated returns the files that this package has renamed from path, the oldest first.
func rotated(path string) (found []string) {
	names, _ := filepath.Glob(globEscaped(path) + "-*") // the pattern is valid
	for _, name := range names {
		if isRotatedName(strings.TrimPrefix(name, path+"-")) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

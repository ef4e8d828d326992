package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
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

// removeEnd removes a part of a line from the end of a file.
func removeEnd(file *os.File, bytes int64) error {
	info, err := file.Stat()
	if err == nil {
		err = file.Truncate(info.Size() - bytes)
	}
	if err != nil {
		return fmt.Errorf("removing a part of a line: %w", err)
	}
	return nil
}

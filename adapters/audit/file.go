// Package audit writes the calls of MCP servers to a file and to a log, and verifies files.
//
// Open opens a File, whose Record appends one JSON line for each call. Each line has a number, the
// hash of the line before it and its own hash; Verify finds lines that were changed, removed, moved
// or added. Reopen follows a file that logrotate has renamed. Log writes calls to a slog.Logger.
//
// The file is not that of a logging library, because the first line of a new file has to continue
// the chain of the file before it, which such libraries have no hook for, and because they drop a
// line that cannot be written.
package audit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/pasteport/pasteport/domain/audit"
)

// The errors of a file that cannot be continued.
var (
	ErrUnchained = errors.New("its last line is not that of this chain: it was changed, or written in another; " +
		"verify the file with \"pasteport audit verify\", and move it away to begin another")
	ErrLocked = errors.New("another process writes to it: give each process its own file")
)

// Options configure a File.
type Options struct {
	Path      string
	Arguments bool         // write the arguments of calls, and not only their digests
	Logger    *slog.Logger // nil for none
}

// ownerOnly is the mode of a new file, because subjects are personal data.
const ownerOnly = 0o600

// File is an audit file in JSON Lines. Each line is written by one system call before Record
// returns, so that a crash loses none while the file can be written.
type File struct {
	options Options
	lock    *flock.Flock
	written atomic.Int64

	mu      sync.Mutex // guards what follows
	file    *os.File
	last    link
	waiting [][]byte // lines to write next; more than one while the file cannot be written
	torn    int      // bytes of a part of a line at the end of the file
	failed  bool     // the last write, which the log has
	closed  bool
}

// Open opens a file, and creates it for its owner only. It removes a line that a crash has cut off,
// and reports that in the file and in the log. It fails for a file whose last line is not of a
// chain, and while another process has it open.
func Open(o Options) (*File, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	// The file itself may be renamed. The dot keeps the lock out of patterns such as calls.jsonl*.
	lock := flock.New(filepath.Join(filepath.Dir(o.Path), "."+filepath.Base(o.Path)+".lock"),
		flock.SetPermissions(ownerOnly))
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = ErrLocked
	}
	if err != nil {
		return nil, fmt.Errorf("opening the audit file %s: locking it: %w", o.Path, err)
	}
	f := &File{options: o, lock: lock}
	if err := f.Reopen(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return f, nil
}

// Record appends the line of a call. A line that cannot be written waits in memory, and is written
// before the next one.
func (f *File) Record(_ context.Context, call audit.Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = append(f.waiting, encode(call.Time, attributes(call, f.options.Arguments)...))
	_ = f.flush() // it has logged the error, and Ready returns the next one
}

// Ready writes the lines that wait, and returns an error while the file cannot be written. Then no
// call should begin.
func (f *File) Ready() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.flush()
}

// Written returns the number of lines that were written.
func (f *File) Written() int64 { return f.written.Load() }

// Close closes the file.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	if err := errors.Join(f.flush(), f.file.Sync(), f.file.Close(), f.lock.Close()); err != nil {
		return fmt.Errorf("closing the audit file: %w", err)
	}
	return nil
}

// Reopen opens the path again, after logrotate has renamed the file. The chain continues, so it
// fails for a file with lines of another chain, and lines go on in the renamed one.
func (f *File) Reopen() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	file, err := os.OpenFile(f.options.Path, os.O_APPEND|os.O_CREATE|os.O_RDWR, ownerOnly)
	if err == nil {
		if err = f.goOnIn(file); err != nil {
			err = errors.Join(err, file.Close())
		}
	}
	if err != nil {
		return fmt.Errorf("opening the audit file %s: %w", f.options.Path, err)
	}
	return f.flush()
}

// goOnIn makes file the current one: a new file, the same one, or at first one with any chain. It
// changes nothing if it fails.
func (f *File) goOnIn(file *os.File) error {
	end, torn, err := readEnd(file)
	if err != nil {
		return err
	}
	last, events := f.last, [][]byte(nil)
	if end == nil {
		events = append(events, encode(time.Now(), slog.String("event", eventFile)))
	} else {
		sealed, err := parseSealed(end)
		if last = sealed.link; err != nil || f.file != nil && last != f.last {
			return ErrUnchained
		}
	}
	if torn > 0 {
		events = append(events, encode(time.Now(), slog.String("event", eventTorn), slog.Int("bytes", torn)))
		f.options.Logger.Warn("removing a line of the audit file that a crash has cut off",
			"file", f.options.Path, "bytes", torn)
	}
	if before := f.file; before != nil {
		go func() { _ = errors.Join(before.Sync(), before.Close()) }() // a disk may be slow
	}
	f.file, f.last, f.torn, f.waiting = file, last, torn, append(events, f.waiting...)
	return nil
}

// flush writes the lines that wait.
func (f *File) flush() error {
	for len(f.waiting) > 0 {
		if err := f.write(f.waiting[0]); err != nil {
			if !f.failed {
				f.options.Logger.Error("cannot write the audit file; calls get 503 until it can be written",
					"file", f.options.Path, "error", err)
			}
			f.failed = true
			return err
		}
		f.written.Add(1)
		f.waiting = f.waiting[1:]
	}
	if f.failed {
		f.failed = false
		f.options.Logger.Warn("the audit file can be written again", "file", f.options.Path)
	}
	return nil
}

// write writes one line in one system call, after it has removed a part of one at the end.
func (f *File) write(text []byte) error {
	if f.torn > 0 {
		info, err := f.file.Stat()
		if err == nil {
			err = f.file.Truncate(info.Size() - int64(f.torn))
		}
		if err != nil {
			return fmt.Errorf("removing a part of a line: %w", err)
		}
	}
	sealed, next := f.last.seal(text)
	n, err := f.file.Write(append(sealed, '\n'))
	if err != nil {
		f.torn = n
		return fmt.Errorf("writing a line: %w", err)
	}
	f.last, f.torn = next, 0
	return nil
}

// readEnd returns the last complete line of a file without its line feed, nil for none, and the
// number of bytes that follow it.
func readEnd(file *os.File) (last []byte, torn int, err error) {
	info, err := file.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("reading an audit file: %w", err)
	}
	var text []byte
	for at := info.Size(); at > 0 && bytes.Count(text, []byte("\n")) < 2; {
		chunk := make([]byte, min(64<<10, at))
		at -= int64(len(chunk))
		if _, err := file.ReadAt(chunk, at); err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, fmt.Errorf("reading an audit file: %w", err)
		}
		text = append(chunk, text...)
	}
	end := bytes.LastIndexByte(text, '\n')
	if end >= 0 {
		last = text[bytes.LastIndexByte(text[:end], '\n')+1 : end]
	}
	return last, len(text) - end - 1, nil
}

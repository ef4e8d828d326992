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
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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
	Arguments bool // write the arguments of calls, and not only their digests

	Now    func() time.Time // nil for time.Now
	Logger *slog.Logger     // nil for none
}

// ownerOnly is the mode of a new file, because subjects are personal data.
const ownerOnly = 0o600

// File is an audit file in JSON Lines. Each line is written by one system call before Record
// returns, so that a crash of the process loses none.
type File struct {
	options Options
	lock    *flock.Flock
	written atomic.Int64

	mu      sync.Mutex // guards what follows
	file    *os.File
	last    link
	waiting []line // to write next; more than one while the file cannot be written
	torn    int64  // bytes of a part of a line at the end of the file
	failed  bool   // the last write, which the log has
	closed  bool
}

// line is a line before it has its place in the chain.
type line struct {
	text   []byte
	isCall bool
}

// Open opens a file, and creates it for its owner only. It removes a line that a crash has cut off,
// and reports that in the file and in the log. It fails for a file whose last line is not of a
// chain, and while another process has it open.
func Open(o Options) (*File, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	// The file itself is renamed. The dot keeps the lock out of patterns such as calls.jsonl*.
	lock := flock.New(filepath.Join(filepath.Dir(o.Path), "."+filepath.Base(o.Path)+".lock"),
		flock.SetPermissions(ownerOnly))
	switch locked, err := lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("opening the audit file %s: locking it: %w", o.Path, err)
	case !locked:
		return nil, fmt.Errorf("opening the audit file %s: %w", o.Path, ErrLocked)
	}
	f := &File{options: o, lock: lock}
	if err := f.open(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := f.Ready(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the audit file: %w", err), f.Close())
	}
	return f, nil
}

// Record appends the line of a call. A line that cannot be written waits in memory, and is written
// before the next one.
func (f *File) Record(_ context.Context, call audit.Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = append(f.waiting, line{encodeCall(call, f.options.Arguments), true})
	_ = f.flush() // it has logged the error, and Ready returns the next one
}

// Ready writes the lines that wait, and returns an error while the file cannot be written. Then no
// call should begin.
func (f *File) Ready() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.flush()
}

// Written returns the number of calls that were written.
func (f *File) Written() int64 { return f.written.Load() }

// Reopen opens the file at the path, which logrotate may have renamed. The chain continues, so it
// fails for a file that has lines of another. Then lines go on in the renamed file.
func (f *File) Reopen() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	if err := f.open(); err != nil {
		return err
	}
	return f.flush()
}

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

// open makes the file at the path the current one. It changes nothing if it fails.
func (f *File) open() error {
	file, err := os.OpenFile(f.options.Path, os.O_APPEND|os.O_CREATE|os.O_RDWR, ownerOnly)
	if err != nil {
		return fmt.Errorf("opening the audit file: %w", err)
	}
	end, err := readTail(file)
	last := f.last
	if err == nil {
		last, err = f.continues(end)
	}
	if err == nil && len(end.torn) > 0 {
		err = removeEnd(file, int64(len(end.torn)))
	}
	if err != nil {
		return fmt.Errorf("opening the audit file %s: %w", f.options.Path, errors.Join(err, file.Close()))
	}
	if before := f.file; before != nil {
		go func() { _ = errors.Join(before.Sync(), before.Close()) }() // a disk may be slow
	}
	f.file, f.last, f.torn = file, last, 0
	f.waiting = append(f.eventsOf(end), f.waiting...)
	return nil
}

// continues returns the link from which the chain continues in a file with that end.
func (f *File) continues(end tail) (link, error) {
	if end.last == nil {
		return f.last, nil
	}
	sealed, err := parseSealed(end.last)
	if err != nil || f.file != nil && sealed.link != f.last {
		return link{}, ErrUnchained
	}
	return sealed.link, nil
}

const maxTornText = 1 << 10 // bytes of a torn line that its event contains

// eventsOf returns the next lines of a file that ends so.
func (f *File) eventsOf(end tail) (events []line) {
	now := formatTime(f.options.Now())
	if end.last == nil {
		events = append(events, line{encode(eventLine{Time: now, Event: eventFile}), false})
	}
	if torn := len(end.torn); torn > 0 {
		text := strings.ToValidUTF8(string(end.torn[:min(torn, maxTornText)]), "\ufffd")
		events = append(events, line{encode(eventLine{now, eventTorn, text, int64(torn)}), false})
		f.options.Logger.Warn("removed a line of the audit file that a crash has cut off",
			"file", f.options.Path, "bytes", torn)
	}
	return events
}

// flush writes the lines that wait.
func (f *File) flush() error {
	for len(f.waiting) > 0 {
		if err := f.write(f.waiting[0].text); err != nil {
			if !f.failed {
				f.options.Logger.Error("cannot write the audit file; calls get 503 until it can be written",
					"file", f.options.Path, "error", err)
			}
			f.failed = true
			return err
		}
		if f.waiting[0].isCall {
			f.written.Add(1)
		}
		f.waiting = f.waiting[1:]
	}
	if f.failed {
		f.failed = false
		f.options.Logger.Warn("the audit file can be written again", "file", f.options.Path)
	}
	return nil
}

// write writes one line in one system call, and removes what a failed one has written.
func (f *File) write(text []byte) error {
	sealed, next := f.last.seal(text)
	if err := f.removeTorn(); err != nil {
		return err
	}
	n, err := f.file.Write(append(sealed, '\n'))
	if err != nil {
		f.torn = int64(n)
		return errors.Join(fmt.Errorf("writing a line: %w", err), f.removeTorn())
	}
	f.last = next
	return nil
}

// removeTorn removes what a failed write has left at the end of the file.
func (f *File) removeTorn() error {
	if f.torn == 0 {
		return nil
	}
	err := removeEnd(f.file, f.torn)
	if err == nil {
		f.torn = 0
	}
	return err
}

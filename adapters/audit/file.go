// Package audit writes the calls of MCP servers to a file and to a log, and verifies files.
//
// Open opens a File, whose Record appends one JSON line for each call. Reopen follows a file that
// logrotate has renamed. With Options.Chain each line has a number, the hash of the line before it
// and its own hash; Verify finds lines that were changed, removed, moved or added. Log writes calls
// to a slog.Logger.
//
// The file is not that of a logging library, because the first line of a new file has to continue
// the chain of the file before it, which such libraries have no hook for, and because they drop a
// line that cannot be written without saying so later.
package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/pasteport/pasteport/domain/audit"
)

// The errors of a file that cannot be continued.
var (
	ErrUnchained = errors.New("its last line is not that of this chain: it was changed, or written without one or " +
		"in another; verify the file with \"pasteport audit verify\", and move it away to begin another")
	ErrLocked = errors.New("another process writes to it: give each process its own file")
)

// Options configure a File.
type Options struct {
	Path      string
	Chain     bool // add hashes, for Verify
	Arguments bool // write the arguments of calls, and not only their digests

	Now    func() time.Time // nil for time.Now
	Logger *slog.Logger     // nil for none
}

// File is an audit file in JSON Lines. Each line is written by one system call before Record
// returns, so that a crash of the process loses none.
type File struct {
	options Options
	gap     gapFile
	written atomic.Int64
	lost    atomic.Int64

	mu      sync.Mutex // guards what follows
	file    *os.File
	lock    *flock.Flock
	last    link
	events  []eventLine // to write before the next line
	torn    int64       // bytes of a part of a line at the end of the file
	missing eventLine   // the event of lines that could not be written since the last one
	closed  bool
}

// Open opens a file, and creates it for its owner only. It removes a line that a crash has cut off,
// and reports that in the file and in the log. With Options.Chain it fails for a file whose last
// line is not of a chain.
func Open(o Options) (*File, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	f := &File{options: o, gap: gapOf(o.Path)}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.open(true); err != nil {
		return nil, err
	}
	f.findGap()
	return f, nil
}

// Record appends the line of a call. If that fails, the call goes on: the log has the error once,
// Lost counts the line, and the next line that can be written says how many are missing, also if
// that is the first line of the next process.
func (f *File) Record(_ context.Context, call audit.Call) {
	line := encodeCall(call, f.options.Arguments)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		f.lose(os.ErrClosed)
		return
	}
	if err := f.append(line); err != nil {
		f.lose(err)
		return
	}
	f.written.Add(1)
}

// Written returns the number of calls that are in the file.
func (f *File) Written() int64 { return f.written.Load() }

// Lost returns the number of calls that could not be written.
func (f *File) Lost() int64 { return f.lost.Load() }

// Reopen opens the file at the path if the open one was renamed or removed. The chain continues, so
// it fails for a file that has lines of another. Then lines go on in the renamed file.
func (f *File) Reopen() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.isAtPath() {
		return nil
	}
	return f.open(false)
}

// Close closes the file.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	if err := finish(f.file, f.lock); err != nil {
		return fmt.Errorf("closing the audit file: %w", err)
	}
	return nil
}

func (f *File) lose(err error) {
	f.lost.Add(1)
	now := formatTime(f.options.Now())
	if f.missing.Lines == 0 {
		f.missing = eventLine{Event: eventLost, Since: now}
	}
	f.missing.Lines++
	f.missing.Time = now
	kept := f.gap.keep(f.missing)
	if f.missing.Lines == 1 {
		f.reportOutage(errors.Join(err, kept))
	}
}

func (f *File) reportOutage(err error) {
	f.options.Logger.Error("cannot write the audit file; calls go on without a line until it can be written",
		"file", f.options.Path, "error", err)
}

// findGap writes how many calls an earlier process could not write, or makes room to keep such a
// number.
func (f *File) findGap() {
	var err error
	if f.missing, err = f.gap.read(); f.missing.Lines > 0 {
		if err := f.writeMissing(); err != nil {
			f.reportOutage(err)
		}
		return
	}
	if err == nil {
		err = f.gap.keep(eventLine{})
	}
	if err != nil {
		f.options.Logger.Warn("calls that cannot be written to the audit file will be forgotten at a restart",
			"file", f.options.Path, "error", err)
	}
}

// append writes a line, after the events that have to come before it.
func (f *File) append(line []byte) error {
	if err := f.writeEvents(); err != nil {
		return err
	}
	if err := f.writeMissing(); err != nil {
		return err
	}
	return f.write(line)
}

// writeMissing writes how many lines are missing before the next one. A process that is killed in
// here reports them twice rather than not at all.
func (f *File) writeMissing() error {
	if f.missing.Lines == 0 {
		return nil
	}
	if err := f.writeEvent(f.missing); err != nil {
		return err
	}
	f.options.Logger.Warn("the audit file can be written again",
		"file", f.options.Path, "lost", f.missing.Lines, "since", f.missing.Since)
	f.missing = eventLine{}
	if err := f.gap.keep(f.missing); err != nil {
		f.options.Logger.Warn("the audit file will report lost calls again at a restart",
			"file", f.options.Path, "error", err)
	}
	return nil
}

func (f *File) writeEvents() error {
	for len(f.events) > 0 {
		if err := f.writeEvent(f.events[0]); err != nil {
			return err
		}
		f.events = f.events[1:]
	}
	return nil
}

func (f *File) writeEvent(line eventLine) error {
	line.Time = formatTime(f.options.Now())
	return f.write(encode(line))
}

// write writes one line in one system call, and removes what a failed one has written.
func (f *File) write(line []byte) error {
	next := f.last
	if f.options.Chain {
		line, next = f.last.seal(line)
	}
	if err := f.removeTorn(); err != nil {
		return err
	}
	n, err := f.file.Write(append(line, '\n'))
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

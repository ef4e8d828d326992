package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/gofrs/flock"
)

// ownerOnly is the mode of a new file, because subjects are personal data.
const ownerOnly = 0o600

// open opens the file at the path and makes it the current one. If that fails, the previous file
// stays open. The first time, the chain continues from the last line of the file or, if it is
// empty, from that of the newest renamed file. Later it continues from the last line that was
// written.
func (f *File) open(first bool) error {
	lock, err := lockFile(f.options.Path)
	if err != nil {
		return fmt.Errorf("opening the audit file %s: %w", f.options.Path, err)
	}
	file, err := os.OpenFile(f.options.Path, os.O_APPEND|os.O_CREATE|os.O_RDWR, ownerOnly)
	if err != nil {
		return fmt.Errorf("opening the audit file: %w", errors.Join(err, lock.Close()))
	}
	before, lockBefore := f.file, f.lock
	if err := f.begin(file, lock, first); err != nil {
		return fmt.Errorf("opening the audit file %s: %w", f.options.Path,
			errors.Join(err, file.Close(), lock.Close()))
	}
	if before != nil {
		go func() { _ = finish(before, lockBefore) }() // a disk may be slow
	}
	if err := f.writeEvents(); err != nil && first {
		return fmt.Errorf("opening the audit file %s: %w", f.options.Path, errors.Join(err, finish(file, lock)))
	}
	return nil
}

// finish flushes and closes a file that gets no more lines.
func finish(file *os.File, lock *flock.Flock) error {
	return errors.Join(file.Sync(), file.Close(), lock.Close())
}

// lockFile makes sure that one process writes to the file: two would break the chain. The lock ends
// with the process. Windows keeps a process from writing to a file that it has locked through
// another handle, so there is no lock there.
func lockFile(path string) (*flock.Flock, error) {
	lock := flock.New(path, flock.SetPermissions(ownerOnly))
	if runtime.GOOS == "windows" {
		return lock, nil
	}
	switch locked, err := lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("locking it: %w", err)
	case !locked:
		return nil, ErrLocked
	}
	return lock, nil
}

// begin makes a file the open one. It changes nothing if it fails.
func (f *File) begin(file *os.File, lock *flock.Flock, first bool) error {
	opened, err := file.Stat()
	locked, lockErr := lock.Stat()
	if err := errors.Join(err, lockErr); err != nil {
		return fmt.Errorf("comparing it with the locked file: %w", err)
	}
	if !os.SameFile(opened, locked) {
		return errors.New("it was renamed at this moment: try again")
	}
	end, err := readTail(file)
	if err != nil {
		return err
	}
	completes := f.isWhole(end.torn)
	if completes {
		end.last = end.torn
	}
	last := f.last
	if f.options.Chain {
		if last, err = f.resume(end, first); err != nil {
			return err
		}
	}
	if completes {
		if _, err := file.Write([]byte("\n")); err != nil {
			return fmt.Errorf("completing its last line: %w", err)
		}
		end.torn = nil
	}
	if torn := len(end.torn); torn > 0 {
		if err := removeEnd(file, int64(torn)); err != nil {
			return err
		}
		f.options.Logger.Warn("removed a line of the audit file that a crash has cut off", "file", f.options.Path,
			"bytes", torn)
	}
	f.file, f.lock, f.last, f.torn, f.events = file, lock, last, 0, nil
	if f.options.Chain {
		f.events = eventsOf(end)
	}
	return nil
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

// isWhole reports whether a line lacks only its line feed.
func (f *File) isWhole(line []byte) bool {
	if f.options.Chain {
		_, err := parseSealed(line)
		return err == nil
	}
	return json.Valid(line)
}

// resume returns the link from which the chain continues in a file with that end.
func (f *File) resume(end tail, first bool) (link, error) {
	switch {
	case end.last == nil && first:
		return lastLinkOf(f.options.Path)
	case end.last == nil:
		return f.last, nil
	}
	sealed, err := parseSealed(end.last)
	if err != nil || !first && sealed.link != f.last {
		return link{}, ErrUnchained
	}
	return sealed.link, nil
}

const maxTornText = 1 << 10 // bytes of a torn line that its event contains

// eventsOf returns the first lines of a file that ends so.
func eventsOf(end tail) (events []eventLine) {
	if end.last == nil {
		events = append(events, eventLine{Event: eventFile})
	}
	if torn := len(end.torn); torn > 0 {
		text := strings.ToValidUTF8(string(end.torn[:min(torn, maxTornText)]), "\ufffd")
		events = append(events, eventLine{Event: eventTorn, Bytes: int64(torn), Text: text})
	}
	return events
}

// isAtPath reports whether the open file is still at the path.
func (f *File) isAtPath() bool {
	opened, err := f.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(f.options.Path)
	return err == nil && os.SameFile(opened, there)
}

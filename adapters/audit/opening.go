package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// ownerOnly is the mode of a new file, because subjects are personal data.
const ownerOnly = 0o600

// open opens the file at the path in place of the open one, which stays open if that fails. At the
// first time the chain continues from the last line of the file, or from that of the file that was
// renamed before; later it continues from the last line that was written.
func (f *File) open(first bool) error {
	file, err := os.OpenFile(f.options.Path, os.O_APPEND|os.O_CREATE|os.O_RDWR, ownerOnly)
	if err != nil {
		return fmt.Errorf("opening the audit file: %w", err)
	}
	before := f.file
	if err := f.begin(file, first); err != nil {
		_ = file.Close()
		return fmt.Errorf("opening the audit file %s: %w", f.options.Path, err)
	}
	if before != nil {
		go finish(before)
	}
	if err := f.writeEvents(); err != nil && first {
		return errors.Join(fmt.Errorf("opening the audit file %s: %w", f.options.Path, err), file.Close())
	}
	return nil
}

// finish flushes a file that gets no more lines, in the background because a disk may be slow.
func finish(file *os.File) {
	_ = file.Sync()
	_ = file.Close()
}

// begin makes a file the open one. It changes nothing if it fails.
func (f *File) begin(file *os.File, first bool) error {
	if err := lock(file); err != nil {
		return err
	}
	end, err := f.readEnd(file)
	if err != nil {
		return err
	}
	last := f.last
	if f.options.Chain && first {
		if last, err = f.resume(end); err != nil {
			return err
		}
	}
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("reading its size: %w", err)
	}
	f.file, f.size, f.last, f.torn, f.events = file, info.Size(), last, 0, nil
	if f.options.Chain {
		f.events = eventsOf(end, f.size)
	}
	return nil
}

// readEnd reads the end of a file and removes a line that was cut off.
func (f *File) readEnd(file *os.File) (tail, error) {
	end, err := readTail(file)
	if err != nil || len(end.torn) == 0 {
		return end, err
	}
	if f.isWhole(end.torn) {
		if _, err := file.Write([]byte("\n")); err != nil {
			return end, fmt.Errorf("completing its last line: %w", err)
		}
		return tail{last: end.torn}, nil
	}
	info, err := file.Stat()
	if err == nil {
		err = file.Truncate(info.Size() - int64(len(end.torn)))
	}
	if err != nil {
		return end, fmt.Errorf("removing a line that was cut off: %w", err)
	}
	f.options.Logger.Warn("removed a line of the audit file that a crash has cut off", "file", f.options.Path, "bytes",
		len(end.torn))
	return end, nil
}

// isWhole reports whether a line lacks only its line feed.
func (f *File) isWhole(line []byte) bool {
	if f.options.Chain {
		_, err := parseSealed(line)
		return err == nil
	}
	return json.Valid(line)
}

// resume returns the link from which the chain continues.
func (f *File) resume(end tail) (link, error) {
	if end.last == nil {
		return lastLinkOf(f.options.Path)
	}
	sealed, err := parseSealed(end.last)
	if err != nil {
		return link{}, ErrUnchained
	}
	return sealed.link, nil
}

const maxTornText = 1 << 10 // bytes of a torn line that its event has

// eventsOf returns the first lines of a file that ends so.
func eventsOf(end tail, size int64) (events []eventLine) {
	if size == 0 {
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

// rotate renames the file after the time, and opens another. A failure is logged once, and the
// lines go on in the old file.
func (f *File) rotate() {
	err := f.rename()
	if err == nil {
		err = f.open(false)
	}
	if err != nil && !f.stuck {
		f.options.Logger.Error("cannot rotate the audit file", "file", f.options.Path, "error", err)
	}
	if f.stuck = err != nil; !f.stuck {
		f.prune()
	}
}

// rename does nothing if another program has renamed the file already.
func (f *File) rename() error {
	if !f.isAtPath() {
		return nil
	}
	for at := f.options.Now().UTC(); ; at = at.Add(time.Microsecond) {
		name := f.options.Path + "-" + at.Format(rotatedFormat)
		if _, err := os.Lstat(name); err != nil { // usually because there is none
			return os.Rename(f.options.Path, name)
		}
	}
}

// prune deletes the oldest rotated files.
func (f *File) prune() {
	if f.options.Keep == 0 {
		return
	}
	names := rotated(f.options.Path)
	for _, name := range names[:max(0, len(names)-f.options.Keep)] {
		if err := os.Remove(name); err != nil {
			f.options.Logger.Error("cannot delete an old audit file", "file", name, "error", err)
			continue
		}
		f.options.Logger.Info("deleted an old audit file", "file", name)
	}
}

func isRotatedName(suffix string) bool {
	_, err := time.Parse(rotatedFormat, suffix)
	return err == nil
}

package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Version is the state of a file: the head of its WAL index, whose counter and checksums every
// commit changes (https://www.sqlite.org/walformat.html, section 2.1). Versions of two openings
// cannot be compared.
type Version struct {
	opening int64
	head    walIndexHead
}

// walIndexHead is the head of a WAL index, in words of the machine's byte order.
type walIndexHead [12]uint32

const (
	walFormat   = 3007000 // in the first word
	walCommits  = 2       // index of the number of commits
	walComplete = 3       // index of the word whose first byte is 1 when the rest is valid
)

func (v Version) commits() uint32 { return v.head[walCommits] }

func (v Version) valid() bool {
	var word [4]byte
	binary.NativeEndian.PutUint32(word[:], v.head[walComplete])
	return v.head[0] == walFormat && word[0] == 1
}

// follows reports that exactly one commit lies between the versions.
func (v Version) follows(before Version) bool {
	return v.opening == before.opening && v.commits() == before.commits()+1
}

var errNoVersion = errors.New("the WAL index cannot be read")

// changeDetector reads the version of a file without a statement. PRAGMA data_version would add 4.5
// µs of CPU to a guarded call of 24 (2026-11-26), and does not count commits: two between two reads
// look like one.
type changeDetector struct {
	to connector

	open     atomic.Pointer[openedFile]
	mu       sync.Mutex // guards the fields below
	openings int64
	closed   bool
}

// openedFile is a file whose WAL index is open. The connection keeps SQLite from making another
// index.
type openedFile struct {
	number     int64
	connection *connection
	index      *walIndex
	checked    atomic.Int64 // when the path still named this file, in nanoseconds since start
}

var start = time.Now()

// versionTrusted is how long readers rely on the path naming the same file.
const versionTrusted = 10 * time.Millisecond

// recentVersion is currentVersion for callers that only read, or that have called currentVersion
// before they wrote.
func (d *changeDetector) recentVersion() (Version, error) {
	if open := d.open.Load(); open != nil && time.Since(start)-time.Duration(open.checked.Load()) < versionTrusted {
		return open.version()
	}
	return d.currentVersion()
}

// readsShowMappedWrites reports whether a read of a file shows what SQLite has written to its
// mapping of the file. Elsewhere nothing is cached.
var readsShowMappedWrites = slices.Contains([]string{"linux", "darwin", "freebsd"}, runtime.GOOS)

// currentVersion returns the version after the last commit to the file that the path names now.
func (d *changeDetector) currentVersion() (Version, error) {
	if !readsShowMappedWrites {
		return Version{}, errNoVersion
	}
	now := time.Since(start)
	found, err := os.Stat(d.to.path)
	if err != nil {
		return Version{}, err
	}
	open := d.open.Load()
	if open == nil || !os.SameFile(found, open.connection.file) {
		if open, err = d.reopen(open); err != nil {
			return Version{}, err
		}
	}
	open.checked.Store(int64(now))
	return open.version()
}

func (o *openedFile) version() (Version, error) {
	v := Version{opening: o.number, head: o.index.head()}
	if !v.valid() {
		return Version{}, errNoVersion
	}
	return v, nil
}

// reopen opens the file that the path names now. former is the file that the caller has found open.
func (d *changeDetector) reopen(former *openedFile) (*openedFile, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.open.Load()
	if d.closed || now == nil && former != nil {
		return nil, errNoVersion
	}
	if now != former { // another caller was faster
		return now, nil
	}
	d.open.Store(nil)
	if former != nil {
		_ = former.connection.Close()
	}
	connection, err := d.connect()
	if err != nil {
		return nil, err
	}
	index, err := openWALIndex(d.to.path + "-shm")
	if err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	d.openings++
	now = &openedFile{number: d.openings, connection: connection, index: index}
	d.open.Store(now)
	return now, nil
}

// detectLimit is short because requests wait for the connection; without it they read the file.
const detectLimit = 200 * time.Millisecond

// connect opens a connection and reads a row, which makes SQLite open the index.
func (d *changeDetector) connect() (*connection, error) {
	ctx, cancel := context.WithTimeout(context.Background(), detectLimit)
	defer cancel()
	opened, err := d.to.Connect(ctx)
	if err != nil {
		return nil, err
	}
	made := opened.(*connection)
	rows, err := made.QueryContext(ctx, "SELECT count(*) FROM sqlite_schema", nil)
	if err != nil {
		return nil, errors.Join(err, made.Close())
	}
	return made, rows.Close()
}

// Close closes the connection to the file.
func (d *changeDetector) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if open := d.open.Swap(nil); open != nil {
		return open.connection.Close()
	}
	return nil
}

var _ io.Closer = (*changeDetector)(nil)

// walIndex is an open WAL index.
type walIndex struct{ file *os.File }

// head reads the head. While a commit changes it, the result is a mixture that matches no version.
// It is zero when another process has truncated the file.
func (i *walIndex) head() (head walIndexHead) {
	var bytes [4 * len(head)]byte
	if _, err := i.file.ReadAt(bytes[:], 0); err != nil {
		return walIndexHead{}
	}
	for word := range head {
		head[word] = binary.NativeEndian.Uint32(bytes[4*word:])
	}
	return head
}

// walIndexes are the WAL indexes that this process has opened. None is closed while the process has
// a connection to any file: closing a file releases the locks that SQLite holds on it
// (https://www.sqlite.org/howtocorrupt.html, section 2.2).
var walIndexes struct {
	sync.Mutex
	connections int
	open        []*walIndex
}

func openWALIndex(path string) (*walIndex, error) {
	walIndexes.Lock()
	defer walIndexes.Unlock()
	found, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	for _, index := range walIndexes.open {
		if known, err := index.file.Stat(); err == nil && os.SameFile(known, found) {
			return index, nil
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	opened := &walIndex{file: file}
	walIndexes.open = append(walIndexes.open, opened)
	return opened, nil
}

// countConnection is called before a connection is opened, and discountConnection after it was
// closed.
func countConnection() {
	walIndexes.Lock()
	defer walIndexes.Unlock()
	walIndexes.connections++
}

func discountConnection() {
	walIndexes.Lock()
	defer walIndexes.Unlock()
	if walIndexes.connections--; walIndexes.connections > 0 {
		return
	}
	for _, index := range walIndexes.open {
		_ = index.file.Close()
	}
	walIndexes.open = nil
}

package persistence

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// version is what a file was like: the head of its WAL index, which every commit changes by its count and its checksums
// (https://www.sqlite.org/walformat.html, section 2.1). Those of two openings cannot be compared.
type version struct {
	opening int64
	head    [indexHead]byte
}

// The head of a WAL index is in the byte order of the machine.
const (
	indexHead    = 48
	indexFormat  = 3007000
	indexCommits = 8  // where the number of commits is
	indexReady   = 12 // where it says that the rest is there
)

func (v version) commits() uint32 { return binary.NativeEndian.Uint32(v.head[indexCommits:]) }

// follows reports that one commit lies between them.
func (v version) follows(before version) bool {
	return v.opening == before.opening && v.commits() == before.commits()+1
}

// coherent is where a file that is read shows at once what is written to its mapping.
var coherent = slices.Contains([]string{"linux", "darwin", "freebsd"}, runtime.GOOS)

var errNoIndex = errors.New("the WAL index is not what it should be")

// watch knows at once when somebody has committed to a file. SQLite would say so too (PRAGMA data_version), in ten times the time.
type watch struct {
	to connector

	asking sync.Mutex
	next   *look

	open     atomic.Pointer[opening]
	mu       sync.Mutex // of what follows
	openings int64
	closed   bool
}

// look is one that has not been taken, and that many wait for.
type look struct {
	taken   sync.WaitGroup
	version version
	err     error
}

// opening is a file that is watched. Its connection keeps SQLite from making another index.
type opening struct {
	number int64
	keeper *connection
	index  *os.File
}

// shared is version for whoever asks it often: all who are about to ask take one look, which begins after the last of them has asked.
func (w *watch) shared() (version, error) {
	w.asking.Lock()
	if coming := w.next; coming != nil {
		w.asking.Unlock()
		coming.taken.Wait()
		return coming.version, coming.err
	}
	mine := new(look)
	mine.taken.Add(1)
	w.next = mine
	w.asking.Unlock()
	runtime.Gosched() // whoever is about to ask joins
	w.asking.Lock()
	w.next = nil
	w.asking.Unlock()
	defer mine.taken.Done()
	mine.version, mine.err = w.version()
	return mine.version, mine.err
}

// version is the newest that is committed.
func (w *watch) version() (version, error) {
	if !coherent {
		return version{}, errNoIndex
	}
	there, err := os.Stat(w.to.path)
	if err != nil {
		return version{}, err
	}
	open := w.open.Load()
	if open == nil || !os.SameFile(there, open.keeper.file) {
		if open, err = w.reopen(open); err != nil {
			return version{}, err
		}
	}
	return open.version()
}

func (o *opening) version() (version, error) {
	v := version{opening: o.number}
	if _, err := o.index.ReadAt(v.head[:], 0); err != nil {
		return version{}, fmt.Errorf("reading the WAL index: %w", err)
	}
	if binary.NativeEndian.Uint32(v.head[:]) != indexFormat || v.head[indexReady] != 1 {
		return version{}, errNoIndex
	}
	return v, nil
}

// reopen watches the file that is there now instead of the one that was.
func (w *watch) reopen(was *opening) (*opening, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.open.Load()
	if w.closed || now == nil && was != nil {
		return nil, errNoIndex
	}
	if now != was { // somebody else was faster
		return now, nil
	}
	w.open.Store(nil)
	if was != nil {
		_ = was.keeper.Close()
	}
	keeper, err := w.keep()
	if err != nil {
		return nil, err
	}
	index, err := openIndex(w.to.path + "-shm")
	if err != nil {
		return nil, errors.Join(err, keeper.Close())
	}
	w.openings++
	now = &opening{w.openings, keeper, index}
	w.open.Store(now)
	return now, nil
}

// keepLimit is short because requests wait for it, which go on without what is remembered.
const keepLimit = 200 * time.Millisecond

// keep opens a connection and reads by it, from when on it has the index open.
func (w *watch) keep() (*connection, error) {
	ctx, cancel := context.WithTimeout(context.Background(), keepLimit)
	defer cancel()
	opened, err := w.to.Connect(ctx)
	if err != nil {
		return nil, err
	}
	keeper := opened.(*connection)
	rows, err := keeper.QueryContext(ctx, "SELECT count(*) FROM sqlite_schema", nil)
	if err != nil {
		return nil, errors.Join(err, keeper.Close())
	}
	return keeper, rows.Close()
}

// Close lets go of the file.
func (w *watch) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if open := w.open.Swap(nil); open != nil {
		return open.keeper.Close()
	}
	return nil
}

var _ io.Closer = (*watch)(nil)

// indexes are the WAL indexes that this process has opened. None is closed while it has a connection to any file: closing a file takes
// away the locks that SQLite holds on it (https://www.sqlite.org/howtocorrupt.html, section 2.2).
var indexes struct {
	sync.Mutex
	connections int
	open        []*os.File
}

func openIndex(path string) (*os.File, error) {
	indexes.Lock()
	defer indexes.Unlock()
	found, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	for _, index := range indexes.open {
		if known, err := index.Stat(); err == nil && os.SameFile(known, found) {
			return index, nil
		}
	}
	index, err := os.Open(path)
	if err == nil {
		indexes.open = append(indexes.open, index)
	}
	return index, err
}

// connecting is called before a connection is opened, and disconnected after it was closed.
func connecting() {
	indexes.Lock()
	defer indexes.Unlock()
	indexes.connections++
}

func disconnected() {
	indexes.Lock()
	defer indexes.Unlock()
	if indexes.connections--; indexes.connections > 0 {
		return
	}
	for _, index := range indexes.open {
		_ = index.Close()
	}
	indexes.open = nil
}

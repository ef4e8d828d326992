package persistence

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// version is what a file was like: the head of its WAL index, which every commit changes by its count and its checksums
// (https://www.sqlite.org/walformat.html, section 2.1). Those of two openings cannot be compared.
type version struct {
	opening int64
	head    [indexHead]uint32
}

// The head of a WAL index, in words of the machine's byte order.
const (
	indexHead    = 12
	indexFormat  = 3007000
	indexCommits = 2 // where the number of commits is
	indexReady   = 3 // whose first byte says that the rest is there
)

func (v version) commits() uint32 { return v.head[indexCommits] }

func (v version) ready() bool {
	var word [4]byte
	binary.NativeEndian.PutUint32(word[:], v.head[indexReady])
	return v.head[0] == indexFormat && word[0] == 1
}

// follows reports that one commit lies between them.
func (v version) follows(before version) bool {
	return v.opening == before.opening && v.commits() == before.commits()+1
}

var errNoIndex = errors.New("the WAL index is not what it should be")

// watch knows at once when somebody has committed to a file. SQLite would say so too (PRAGMA data_version), by a statement.
type watch struct {
	to connector

	open     atomic.Pointer[opening]
	mu       sync.Mutex // of what follows
	openings int64
	closed   bool
}

// opening is a file that is watched. Its connection keeps SQLite from making another index.
type opening struct {
	number int64
	keeper *connection
	index  *index
	found  atomic.Int64 // when the file was still where it should be, in nanoseconds since began
}

var began = time.Now()

// glance is how long those who only read believe that a file is still there, and no other one in its place.
const glance = 10 * time.Millisecond

// atGlance is version for whoever only reads, or has looked before writing.
func (w *watch) atGlance() (version, error) {
	if open := w.open.Load(); open != nil && time.Since(began)-time.Duration(open.found.Load()) < glance {
		return open.version()
	}
	return w.version()
}

// version is the newest that is committed.
func (w *watch) version() (version, error) {
	if !canMap {
		return version{}, errNoIndex
	}
	now := time.Since(began)
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
	open.found.Store(int64(now))
	return open.version()
}

func (o *opening) version() (version, error) {
	v := version{opening: o.number, head: o.index.head()}
	if !v.ready() {
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
	now = &opening{number: w.openings, keeper: keeper, index: index}
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

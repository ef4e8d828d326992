package persistence

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pasteport/pasteport/domain/oauth"
)

const recentGrants = 1024

// recent remembers what the guard has read, for as long as nobody has committed anything to the file: neither this process nor
// another. It asks SQLite about that before each use, which takes a third of the time of reading a grant, so nothing is ever stale.
type recent struct {
	watch *watch
	rows  *lru.Cache[oauth.Digest, recentRow]
}

// recentRow is a row that was read after the file had this version.
type recentRow struct {
	version version
	found   foundRow
}

func newRecent(to connector) *recent {
	rows, _ := lru.New[oauth.Digest, recentRow](recentGrants) // fails only for a size below one
	return &recent{&watch{to: to}, rows}
}

// read returns what is remembered, or what ask reads now.
func (r *recent) read(ctx context.Context, secret oauth.Digest, ask func() (foundRow, error)) (foundRow, error) {
	now, err := r.watch.version(ctx)
	if err != nil { // the reader says what is wrong, in its own way
		return ask()
	}
	if known, found := r.rows.Get(secret); found && known.version == now {
		return known.found, nil
	}
	found, err := ask()
	if err == nil {
		r.rows.Add(secret, recentRow{now, found}) // what was committed since now makes it older than it is, never younger
	}
	return found, err
}

// version is what a file was like; those of two connections cannot be compared.
type version struct{ connection, data int64 }

// watch has a connection of its own, which never writes and therefore sees every commit as somebody else's.
type watch struct {
	to connector

	mu       sync.Mutex
	number   int64 // of the connection
	open     *connection
	question driver.Stmt
}

// version asks SQLite which version of the file is the newest that is committed (PRAGMA data_version).
func (w *watch) version(ctx context.Context) (version, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ensure(ctx); err != nil {
		return version{}, err
	}
	data, err := ask(w.question)
	if err != nil {
		return version{}, errors.Join(fmt.Errorf("asking for the version: %w", err), w.drop())
	}
	return version{w.number, data}, nil
}

// ensure opens a connection, or another one when its file is no longer there.
func (w *watch) ensure(ctx context.Context) error {
	if w.open != nil {
		there, err := os.Stat(w.open.path)
		if err == nil && os.SameFile(there, w.open.file) {
			return nil
		}
		if err := errors.Join(err, w.drop()); err != nil {
			return err
		}
	}
	opened, err := w.to.Connect(ctx)
	if err != nil {
		return err
	}
	own := opened.(connection)
	question, err := own.Prepare("PRAGMA data_version")
	if err != nil {
		return errors.Join(err, own.Close())
	}
	w.number++
	w.open, w.question = &own, question
	return nil
}

func ask(question driver.Stmt) (data int64, err error) {
	rows, err := question.(driver.StmtQueryContext).QueryContext(context.Background(), nil)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	answer := make([]driver.Value, 1)
	if err := rows.Next(answer); err != nil {
		return 0, err
	}
	data, ok := answer[0].(int64)
	if !ok {
		return 0, fmt.Errorf("it is %T", answer[0])
	}
	return data, nil
}

func (w *watch) drop() error {
	if w.open == nil {
		return nil
	}
	err := errors.Join(w.question.Close(), w.open.Close())
	w.open, w.question = nil, nil
	return err
}

// Close lets go of the file.
func (w *watch) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = connector{} // nothing is opened any more
	return w.drop()
}

var _ io.Closer = (*watch)(nil)

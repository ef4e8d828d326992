package main

import (
	"runtime"

	"github.com/pasteport/pasteport/bench/server/raw"
)

// writer runs all waiting writes to a SQLite file in one transaction.
type writer struct {
	db      *raw.Database
	waiting chan write
}

// write is a waiting write. One failure may fail the whole transaction, because no write is
// expected to fail.
type write struct {
	work     func() error
	answered chan error
}

const mostAtOnce = 256

func newWriter(db *raw.Database) *writer {
	w := &writer{db: db, waiting: make(chan write, mostAtOnce)}
	go w.run()
	return w
}

// These methods implement minimal.Rows.

func (w *writer) Close() error { return w.db.Close() }

func (w *writer) Approve(id string, code raw.Digest, challenge string) error {
	return w.do(func() error { return w.db.Approve(id, code, challenge) })
}

func (w *writer) Redeem(
	id string, code raw.Digest, challenge string, refresh raw.Digest,
) (redeemed bool, err error) {
	err = w.do(func() (err error) {
		redeemed, err = w.db.Redeem(id, code, challenge, refresh)
		return err
	})
	return redeemed, err
}

func (w *writer) Rotate(id string, presented, next raw.Digest) (rotated bool, err error) {
	err = w.do(func() (err error) {
		rotated, err = w.db.Rotate(id, presented, next)
		return err
	})
	return rotated, err
}

func (w *writer) do(work func() error) error {
	one := write{work, make(chan error, 1)}
	w.waiting <- one
	return <-one.answered
}

func (w *writer) run() {
	for first := range w.waiting {
		runtime.Gosched() // let other writers join
		writes := []write{first}
		for range min(len(w.waiting), mostAtOnce-1) {
			writes = append(writes, <-w.waiting)
		}
		err := w.carryOut(writes)
		for _, one := range writes {
			one.answered <- err
		}
	}
}

func (w *writer) carryOut(writes []write) error {
	return w.db.Together(func() error {
		for _, one := range writes {
			if err := one.work(); err != nil {
				return err
			}
		}
		return nil
	})
}

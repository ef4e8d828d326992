package main

import (
	"context"
	"errors"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bench/server/raw"
	"github.com/pasteport/pasteport/domain/oauth"
)

// adder stores more codes.
type adder func(together int) error

// openStore opens Pasteport's store, which groups concurrent writes by itself.
func openStore(file string) (add adder, closeStore func() error, err error) {
	store, err := persistence.OpenSQLite(file)
	if err != nil {
		return nil, nil, err
	}
	return func(int) error {
		code, _ := raw.NewCode()
		of := oauth.Selection{Code: code.ID(), Known: &oauth.Authorizations{}}
		return store.Change(context.Background(), of, func(found *oauth.Authorizations) error {
			found.Codes = append(found.Codes, code)
			return nil
		})
	}, store.Close, nil
}

// openRaw opens the raw database, which writes the same rows with one transaction per call.
func openRaw(file string) (add adder, closeRaw func() error, err error) {
	db, err := raw.Open(file)
	if err != nil {
		return nil, nil, err
	}
	return func(together int) error {
		type approved struct {
			id   string
			code raw.Digest
		}
		all := make([]approved, 0, together)
		for range together {
			code, digest := raw.NewCode() // every approval creates a code, for any store
			all = append(all, approved{code.ID(), digest})
		}
		return db.Together(func() (err error) {
			for _, one := range all {
				err = errors.Join(err, db.Approve(one.id, one.code, raw.Challenge))
			}
			return err
		})
	}, db.Close, nil
}

// Package boltstore is an oauth.Store on bbolt, as an example of a store for a database that
// Pasteport does not support. It passes storespec.Contract.
package boltstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.etcd.io/bbolt"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Store keeps each code and grant as the JSON of its snapshot, under its id. bbolt runs one writing
// transaction at a time, so a change always sees the newest state and runs once.
type Store struct{ *bbolt.DB }

var codes, grants, used = []byte("codes"), []byte("grants"), []byte("used")

// Open opens the file, and creates it if it is missing.
func Open(file string) (*Store, error) {
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		return nil, err
	}
	return &Store{db}, db.Update(func(tx *bbolt.Tx) (err error) {
		for _, bucket := range [][]byte{codes, grants, used} {
			_, failed := tx.CreateBucketIfNotExists(bucket)
			err = errors.Join(err, failed)
		}
		return err
	})
}

func put(tx *bbolt.Tx, bucket []byte, id string, row any) error {
	value, err := json.Marshal(row)
	return errors.Join(err, tx.Bucket(bucket).Put([]byte(id), value))
}

func each[Row any](tx *bbolt.Tx, bucket []byte, take func(id []byte, row Row)) error {
	return tx.Bucket(bucket).ForEach(func(id, value []byte) error {
		var row Row
		err := json.Unmarshal(value, &row)
		take(id, row)
		return err
	})
}

// find reads every row. A larger store looks up ids, and has an index by HostPrint.
func find(tx *bbolt.Tx, of oauth.Selection) (found oauth.Authorizations, err error) {
	err = errors.Join(each(tx, codes, func(_ []byte, row oauth.CodeSnapshot) {
		if of.HasCode(row) {
			found.Codes = append(found.Codes, oauth.RestoreCode(row))
		}
	}), each(tx, grants, func(_ []byte, row oauth.GrantSnapshot) {
		if of.HasGrant(row) {
			found.Grants = append(found.Grants, oauth.RestoreGrant(row))
		}
	}))
	return found, err
}

// Find implements oauth.Store.
func (s *Store) Find(_ context.Context, of oauth.Selection) (found oauth.Authorizations, err error) {
	err = s.View(func(tx *bbolt.Tx) (err error) {
		found, err = find(tx, of)
		return err
	})
	return found, err
}

// Change implements oauth.Store.
func (s *Store) Change(_ context.Context, of oauth.Selection, change func(*oauth.Authorizations) error) error {
	return s.Update(func(tx *bbolt.Tx) error {
		found, err := find(tx, of)
		if err = cmp.Or(err, change(&found)); err != nil {
			return err
		}
		for _, code := range found.Codes {
			err = errors.Join(err, put(tx, codes, code.ID(), code.Snapshot()))
		}
		for _, grant := range found.Grants {
			err = errors.Join(err, put(tx, grants, grant.ID(), grant.Snapshot()))
		}
		return err
	})
}

// UseOnce implements oauth.Store.
func (s *Store) UseOnce(_ context.Context, assertion oauth.Digest, forgetAfter time.Time) error {
	return s.Update(func(tx *bbolt.Tx) error {
		if tx.Bucket(used).Get(assertion[:]) != nil {
			return oauth.ErrDuplicate
		}
		return put(tx, used, string(assertion[:]), map[string]time.Time{"ForgetAfter": forgetAfter})
	})
}

// DeleteExpired implements oauth.Store.
func (s *Store) DeleteExpired(_ context.Context, now time.Time) (deleted int, err error) {
	err = s.Update(func(tx *bbolt.Tx) (err error) {
		for _, bucket := range [][]byte{codes, grants, used} {
			var expired [][]byte
			err = errors.Join(err, each(tx, bucket, func(id []byte, row struct{ ForgetAfter time.Time }) {
				if !row.ForgetAfter.After(now) {
					expired = append(expired, id)
				}
			}))
			for _, id := range expired {
				err = errors.Join(err, tx.Bucket(bucket).Delete(id))
			}
			deleted += len(expired)
		}
		return err
	})
	return deleted, err
}

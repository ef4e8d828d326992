// Package boltstore is an oauth.Store on bbolt, as an example of a store for a database that
// Pasteport does not support. It passes storespec.Contract.
package boltstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Store keeps each code and grant as the JSON of its snapshot, under its id. bbolt runs one writing
// transaction at a time, so a closure always sees the newest state and runs once.
type Store struct{ db *bbolt.DB }

var codes, grants, used = []byte("codes"), []byte("grants"), []byte("used")

// Open opens the file, and creates it if it is missing.
func Open(file string) (*Store, error) {
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bbolt.Tx) (err error) {
		for _, bucket := range [][]byte{codes, grants, used} {
			_, failed := tx.CreateBucketIfNotExists(bucket)
			err = errors.Join(err, failed)
		}
		return err
	})
	return &Store{db}, err
}

// Close closes the file.
func (s *Store) Close() error { return s.db.Close() }

func get[Row any](tx *bbolt.Tx, bucket []byte, id string) (row Row, err error) {
	value := tx.Bucket(bucket).Get([]byte(id))
	if value == nil {
		return row, oauth.ErrNotFound
	}
	return row, json.Unmarshal(value, &row)
}

func put(tx *bbolt.Tx, bucket []byte, id string, row any) error {
	value, err := json.Marshal(row)
	return errors.Join(err, tx.Bucket(bucket).Put([]byte(id), value))
}

func all[Row any](tx *bbolt.Tx, bucket []byte, take func(row Row)) error {
	return tx.Bucket(bucket).ForEach(func(_, value []byte) error {
		var row Row
		err := json.Unmarshal(value, &row)
		take(row)
		return err
	})
}

// AddCode implements oauth.Store.
func (s *Store) AddCode(_ context.Context, code *oauth.AuthorizationCode,
	supersede func(*oauth.AuthorizationCode) error) error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		earlier, err := get[oauth.CodeSnapshot](tx, codes, code.ID())
		if err == nil {
			err = supersede(oauth.RestoreCode(earlier))
		}
		if err != nil && !errors.Is(err, oauth.ErrNotFound) {
			return err
		}
		return put(tx, codes, code.ID(), code.Snapshot())
	})
}

// Code implements oauth.Store.
func (s *Store) Code(_ context.Context, id string) (code *oauth.AuthorizationCode, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		row, err := get[oauth.CodeSnapshot](tx, codes, id)
		code = oauth.RestoreCode(row)
		return err
	})
	return code, err
}

// RedeemCode implements oauth.Store.
func (s *Store) RedeemCode(_ context.Context, known *oauth.AuthorizationCode,
	redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		row, err := get[oauth.CodeSnapshot](tx, codes, known.ID())
		if err != nil {
			return err
		}
		code := oauth.RestoreCode(row)
		grant, err := redeem(code)
		if err != nil {
			return err
		}
		return errors.Join(put(tx, codes, code.ID(), code.Snapshot()), put(tx, grants, grant.ID(), grant.Snapshot()))
	})
}

// Grant implements oauth.Store.
func (s *Store) Grant(_ context.Context, id string) (grant *oauth.AccessGrant, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		row, err := get[oauth.GrantSnapshot](tx, grants, id)
		grant = oauth.RestoreGrant(row)
		return err
	})
	return grant, err
}

// UpdateGrant implements oauth.Store.
func (s *Store) UpdateGrant(_ context.Context, known *oauth.AccessGrant,
	change func(*oauth.AccessGrant) error) error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		before, err := get[oauth.GrantSnapshot](tx, grants, known.ID())
		if err != nil {
			return err
		}
		grant := oauth.RestoreGrant(before)
		if err := change(grant); err != nil {
			return err
		}
		return putChanged(tx, before, grant)
	})
}

// putChanged keeps the last use, which only RecordUse writes.
func putChanged(tx *bbolt.Tx, before oauth.GrantSnapshot, grant *oauth.AccessGrant) error {
	after := grant.Snapshot()
	after.LastUsedAt, after.LastUsedToken = before.LastUsedAt, before.LastUsedToken
	return put(tx, grants, after.ID, after)
}

// RecordUse implements oauth.Store.
func (s *Store) RecordUse(_ context.Context, uses map[string]oauth.Use) error {
	return s.db.Update(func(tx *bbolt.Tx) (err error) {
		for id, use := range uses {
			row, unread := get[oauth.GrantSnapshot](tx, grants, id)
			if errors.Is(unread, oauth.ErrNotFound) {
				continue
			}
			if unread != nil {
				return unread
			}
			last := oauth.Use{At: row.LastUsedAt, Access: row.LastUsedToken}.Latest(use)
			row.LastUsedAt, row.LastUsedToken = last.At, last.Access
			err = errors.Join(err, put(tx, grants, id, row))
		}
		return err
	})
}

// rowsOf reads every row. A larger store has an index by HostPrint.
func rowsOf(tx *bbolt.Tx,
	host oauth.Fingerprint) (issued []oauth.CodeSnapshot, active []oauth.GrantSnapshot, err error) {
	err = errors.Join(all(tx, codes, func(row oauth.CodeSnapshot) {
		if row.State == oauth.IssuedCode && string(row.HostPrint) == string(host[:]) {
			issued = append(issued, row)
		}
	}), all(tx, grants, func(row oauth.GrantSnapshot) {
		if row.State == oauth.ActiveGrant && string(row.HostPrint) == string(host[:]) {
			active = append(active, row)
		}
	}))
	slices.SortStableFunc(issued, func(a, b oauth.CodeSnapshot) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	slices.SortStableFunc(active, func(a, b oauth.GrantSnapshot) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return issued, active, err
}

func restore(issued []oauth.CodeSnapshot, active []oauth.GrantSnapshot) (found oauth.Authorizations) {
	for _, row := range issued {
		found.Codes = append(found.Codes, oauth.RestoreCode(row))
	}
	for _, row := range active {
		found.Grants = append(found.Grants, oauth.RestoreGrant(row))
	}
	return found
}

// AuthorizationsOf implements oauth.Store.
func (s *Store) AuthorizationsOf(_ context.Context, host oauth.Fingerprint) (found oauth.Authorizations, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		issued, active, err := rowsOf(tx, host)
		found = restore(issued, active)
		return err
	})
	return found, err
}

// UpdateAuthorizationsOf implements oauth.Store.
func (s *Store) UpdateAuthorizationsOf(_ context.Context, host oauth.Fingerprint,
	change func(oauth.Authorizations) error) error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		issued, active, err := rowsOf(tx, host)
		found := restore(issued, active)
		if err = cmp.Or(err, change(found)); err != nil {
			return err
		}
		for _, code := range found.Codes {
			err = errors.Join(err, put(tx, codes, code.ID(), code.Snapshot()))
		}
		for i, grant := range found.Grants {
			err = errors.Join(err, putChanged(tx, active[i], grant))
		}
		return err
	})
}

// UseOnce implements oauth.Store.
func (s *Store) UseOnce(_ context.Context, assertion oauth.Digest, forgetAfter time.Time) error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		if tx.Bucket(used).Get(assertion[:]) != nil {
			return oauth.ErrDuplicate
		}
		return put(tx, used, string(assertion[:]), forgetAfter)
	})
}

// DeleteExpired implements oauth.Store.
func (s *Store) DeleteExpired(_ context.Context, now time.Time) (deleted int, err error) {
	err = s.db.Update(func(tx *bbolt.Tx) error {
		return errors.Join(
			deleteExpired(tx, codes, &deleted, now, func(row oauth.CodeSnapshot) time.Time { return row.ForgetAfter }),
			deleteExpired(tx, grants, &deleted, now, func(row oauth.GrantSnapshot) time.Time {
				return row.ForgetAfter
			}),
			deleteExpired(tx, used, &deleted, now, func(end time.Time) time.Time { return end }))
	})
	return deleted, err
}

func deleteExpired[Row any](tx *bbolt.Tx, bucket []byte, deleted *int, now time.Time,
	end func(Row) time.Time) (err error) {
	var expired [][]byte
	err = tx.Bucket(bucket).ForEach(func(key, value []byte) error {
		var row Row
		err := json.Unmarshal(value, &row)
		if err == nil && !end(row).After(now) {
			expired = append(expired, key)
		}
		return err
	})
	for _, key := range expired {
		err = errors.Join(err, tx.Bucket(bucket).Delete(key))
	}
	*deleted += len(expired)
	return err
}

package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/domain/oauth"
)

// adder keeps some more grants with their codes.
type adder func(together int) error

// openStore opens our store in a file, which finds by itself what can be written together.
func openStore(file string) (add adder, closeStore func() error, err error) {
	store, err := persistence.OpenSQLite(file)
	if err != nil {
		return nil, nil, err
	}
	return func(int) error {
		grant := newGrant()
		return store.AddGrant(context.Background(), grant, grant.Supersedes)
	}, store.Close, nil
}

// newGrant has what an approval leaves in every column.
func newGrant() *oauth.AccessGrant {
	now, id, digest := time.Now(), newID(), random(32)
	return oauth.RestoreGrant(oauth.GrantSnapshot{
		ID: id, ClientID: "https://client.example/client.json", ClientName: "Client", AuthMethod: "none", RedirectURI: "http://127.0.0.1:4321/callback",
		Resource: "https://cms.example/mcp", Scopes: "mcp offline_access", Subject: "somebody", State: "pending", CreatedAt: now, VerifiedAt: now,
		IdleEnd: now.Add(time.Hour), AbsoluteEnd: now.Add(24 * time.Hour), ForgetAfter: now.Add(time.Hour), CodeDigest: digest,
		CodeChallenge: "hsyEji9XbGzoj5c85_UveU5p3NWYo8VzqQAwigcF2tE", CodeExpiresAt: now.Add(time.Minute),
		HostPrint: random(32), HostBox: random(80), HostWrap: random(60),
	}, oauth.SecretSnapshot{Digest: digest, Grant: id, Kind: string(oauth.CodeSecret), HostWrap: random(60), ForgetAfter: now.Add(time.Hour)})
}

// newID is like that of a ticket: the time, and then chance.
func newID() string { return fmt.Sprintf("%012x%x", time.Now().UnixMilli(), random(10)) }

func random(size int) []byte {
	bytes := make([]byte, size)
	_, _ = rand.Read(bytes) // never fails
	return bytes
}

// openRaw writes the same rows with nothing between it and the driver: one connection, prepared statements, a transaction for
// those that are added together.
func openRaw(file string) (add adder, closeRaw func() error, err error) {
	if err := leaveOne(file); err != nil {
		return nil, nil, err
	}
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)&_pragma=foreign_keys(ON)&_txlock=immediate")
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(1)
	grant, err := copierOf(db, "grants", "id", "code_digest", "host_print")
	if err != nil {
		return nil, nil, err
	}
	secret, err := copierOf(db, "secrets", "grant_id", "digest")
	if err != nil {
		return nil, nil, err
	}
	return func(together int) error {
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		for range together {
			id, digest := newID(), random(32)
			if err := errors.Join(grant.copy(tx, id, digest, random(32)), secret.copy(tx, id, digest)); err != nil {
				return errors.Join(err, tx.Rollback())
			}
		}
		return tx.Commit()
	}, db.Close, nil
}

// leaveOne makes the schema and one grant.
func leaveOne(file string) error {
	add, closeStore, err := openStore(file)
	if err != nil {
		return err
	}
	return errors.Join(add(1), closeStore())
}

// copier adds rows that are like the first one of a table but for some columns.
type copier struct {
	insert  *sql.Stmt
	values  []any
	changed []int
}

func copierOf(db *sql.DB, table string, changed ...string) (*copier, error) {
	rows, err := db.Query("SELECT * FROM " + table + " LIMIT 1")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	c := &copier{values: make([]any, len(names))}
	into := make([]any, len(names))
	for i := range names {
		into[i] = &c.values[i]
	}
	if !rows.Next() {
		return nil, fmt.Errorf("%s is empty", table)
	}
	if err := errors.Join(rows.Scan(into...), rows.Close()); err != nil {
		return nil, err
	}
	for _, change := range changed {
		for i, name := range names {
			if name == change {
				c.changed = append(c.changed, i)
			}
		}
	}
	c.insert, err = db.Prepare("INSERT INTO " + table + " VALUES (?" + strings.Repeat(", ?", len(names)-1) + ")")
	return c, err
}

func (c *copier) copy(tx *sql.Tx, changes ...any) error {
	values := append([]any(nil), c.values...)
	for i, change := range changes {
		values[c.changed[i]] = change
	}
	insert := tx.Stmt(c.insert)
	defer func() { _ = insert.Close() }()
	_, err := insert.Exec(values...)
	return err
}

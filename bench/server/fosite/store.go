package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"time"

	"github.com/ory/fosite"
	_ "modernc.org/sqlite" // Pasteport's driver

	"github.com/pasteport/pasteport/bench/server"
)

// store keeps sessions as JSON rows in SQLite, with the same durability as Pasteport: WAL,
// synchronous=FULL, one write connection.
type store struct {
	db     *sql.DB // the connection that writes
	reader *sql.DB
	client fosite.Client
}

const schema = `
CREATE TABLE sessions (
  kind TEXT NOT NULL, signature TEXT NOT NULL, request TEXT NOT NULL, body BLOB NOT NULL, active INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (kind, signature)
) WITHOUT ROWID;
CREATE INDEX sessions_of_a_request ON sessions (request);`

func openStore(order server.Order) (*store, error) {
	address := "file:" + filepath.Join(order.Dir, "fosite.db") +
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate"
	writer, err := sql.Open("sqlite", address)
	if err != nil {
		return nil, err
	}
	writer.SetMaxOpenConns(1)
	if _, err = writer.Exec(schema); err != nil {
		return nil, err
	}
	reader, err := sql.Open("sqlite", address)
	if err != nil {
		return nil, err
	}
	reader.SetMaxOpenConns(4)
	reader.SetMaxIdleConns(4)
	return &store{writer, reader, clientOf(order)}, nil
}

func (s *store) close() error { return errors.Join(s.reader.Close(), s.db.Close()) }

type transaction struct{}

// BeginTX implements fosite's Transactional.
func (s *store) BeginTX(ctx context.Context) (context.Context, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	return context.WithValue(ctx, transaction{}, tx), err
}

// Commit implements fosite's Transactional.
func (s *store) Commit(ctx context.Context) error {
	return ctx.Value(transaction{}).(*sql.Tx).Commit()
}

// Rollback implements fosite's Transactional.
func (s *store) Rollback(ctx context.Context) error {
	return ctx.Value(transaction{}).(*sql.Tx).Rollback()
}

func (s *store) exec(ctx context.Context, statement string, values ...any) (err error) {
	if tx, under := ctx.Value(transaction{}).(*sql.Tx); under {
		_, err = tx.ExecContext(ctx, statement, values...)
	} else {
		_, err = s.db.ExecContext(ctx, statement, values...)
	}
	return err
}

// kept is the JSON of a request in a row.
type kept struct {
	ID                                                     string
	At                                                     time.Time
	Requested, Granted, RequestedAudience, GrantedAudience []string
	Form                                                   map[string][]string
	Session                                                *fosite.DefaultSession
}

func (s *store) add(ctx context.Context, kind, signature string, r fosite.Requester) error {
	body, err := json.Marshal(kept{
		r.GetID(), r.GetRequestedAt(), r.GetRequestedScopes(), r.GetGrantedScopes(), r.GetRequestedAudience(),
		r.GetGrantedAudience(),
		r.GetRequestForm(), r.GetSession().(*fosite.DefaultSession),
	})
	if err != nil {
		return err
	}
	return s.exec(ctx, "INSERT INTO sessions (kind, signature, request, body) VALUES (?, ?, ?, ?)", kind, signature,
		r.GetID(), body)
}

func (s *store) get(ctx context.Context, kind, signature string) (r fosite.Requester, active bool, err error) {
	const query = "SELECT body, active FROM sessions WHERE kind = ? AND signature = ?"
	row := func() *sql.Row {
		if tx, under := ctx.Value(transaction{}).(*sql.Tx); under {
			return tx.QueryRowContext(ctx, query, kind, signature)
		}
		return s.reader.QueryRowContext(ctx, query, kind, signature)
	}()
	var body []byte
	if err = row.Scan(&body, &active); errors.Is(err, sql.ErrNoRows) {
		return nil, false, fosite.ErrNotFound
	} else if err != nil {
		return nil, false, err
	}
	var k kept
	if err = json.Unmarshal(body, &k); err != nil {
		return nil, false, err
	}
	return &fosite.Request{
		ID:                k.ID,
		RequestedAt:       k.At,
		Client:            s.client,
		RequestedScope:    k.Requested,
		GrantedScope:      k.Granted,
		RequestedAudience: k.RequestedAudience,
		GrantedAudience:   k.GrantedAudience,
		Form:              k.Form,
		Session:           k.Session,
	}, active, nil
}

func (s *store) remove(ctx context.Context, kind, signature string) error {
	return s.exec(ctx, "DELETE FROM sessions WHERE kind = ? AND signature = ?", kind, signature)
}

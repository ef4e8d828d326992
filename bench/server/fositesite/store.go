package fositesite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/ory/fosite"

	"github.com/pasteport/pasteport/bench/server"
)

// store keeps sessions as rows with JSON: in SQLite with the same durability as Pasteport (WAL,
// synchronous=FULL, one write connection), or on PostgreSQL. As in Ory Hydra, which has the only
// maintained SQL store of fosite, each kind has a table with an index on the request; Hydra has
// more columns and indexes.
type store struct {
	db     *sql.DB // the connections that write
	reader *sql.DB
	client fosite.Client
}

const schema = `
CREATE TABLE %[1]s (
  signature TEXT NOT NULL PRIMARY KEY, request TEXT NOT NULL, body TEXT NOT NULL, active BOOLEAN NOT NULL DEFAULT TRUE
) %[2]s;
CREATE INDEX %[1]s_of_a_request ON %[1]s (request);`

func createTables(db *sql.DB, suffix string) (err error) {
	for _, t := range []table{codes, pkces, accesses, refreshes} {
		_, wrong := db.Exec(fmt.Sprintf(schema, t, suffix))
		err = errors.Join(err, wrong)
	}
	return err
}

func openStore(order server.Order) (*store, error) {
	if order.Database != "" {
		return openServer(order)
	}
	address := "file:" + filepath.Join(order.Dir, "fosite.db") +
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate"
	writer, err := sql.Open("sqlite", address)
	if err != nil {
		return nil, err
	}
	writer.SetMaxOpenConns(1)
	if err := createTables(writer, "WITHOUT ROWID"); err != nil {
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

const connections = 16 // as many as Pasteport opens

func openServer(order server.Order) (*store, error) {
	pool, err := sql.Open("pgx", order.Database)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	if err := createTables(pool, ""); err != nil {
		return nil, err
	}
	return &store{pool, pool, clientOf(order)}, nil
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

func (s *store) add(ctx context.Context, t table, signature string, r fosite.Requester) error {
	body, err := json.Marshal(kept{
		r.GetID(), r.GetRequestedAt(), r.GetRequestedScopes(), r.GetGrantedScopes(), r.GetRequestedAudience(),
		r.GetGrantedAudience(),
		r.GetRequestForm(), r.GetSession().(*fosite.DefaultSession),
	})
	if err != nil {
		return err
	}
	insert := "INSERT INTO " + string(t) + " (signature, request, body) VALUES ($1, $2, $3)"
	return s.exec(ctx, insert, signature, r.GetID(), string(body))
}

func (s *store) get(ctx context.Context, t table, signature string) (r fosite.Requester, active bool, err error) {
	query := "SELECT body, active FROM " + string(t) + " WHERE signature = $1"
	row := func() *sql.Row {
		if tx, under := ctx.Value(transaction{}).(*sql.Tx); under {
			return tx.QueryRowContext(ctx, query, signature)
		}
		return s.reader.QueryRowContext(ctx, query, signature)
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

// deactivate and remove change the sessions with a value in a column.

func (s *store) deactivate(ctx context.Context, t table, column, value string) error {
	return s.exec(ctx, "UPDATE "+string(t)+" SET active = FALSE WHERE "+column+" = $1", value)
}

func (s *store) remove(ctx context.Context, t table, column, value string) error {
	return s.exec(ctx, "DELETE FROM "+string(t)+" WHERE "+column+" = $1", value)
}

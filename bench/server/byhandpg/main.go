// Command byhandpg is the minimal code flow on PostgreSQL. It writes the same rows as Pasteport's
// store, through pgx itself.
package main

import (
	"context"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pasteport/pasteport/adapters/persistence"
	_ "github.com/pasteport/pasteport/adapters/persistence/postgres"
	"github.com/pasteport/pasteport/bench/server"
	"github.com/pasteport/pasteport/bench/server/minimal"
	"github.com/pasteport/pasteport/bench/server/raw"
)

func main() { server.Main(map[string]server.Open{"echo-flow": open}) }

func open(order server.Order, _ string) (server.Site, error) {
	options := persistence.ServerOptions{SecretFile: filepath.Join(order.Dir, "secret")}
	store, err := persistence.OpenServer(order.Database, options) // creates the schema
	if err != nil {
		return server.Site{}, err
	}
	config, err := pgxpool.ParseConfig(order.Database)
	if err != nil {
		return server.Site{}, err
	}
	config.MaxConns = persistence.DefaultConnections
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return server.Site{}, err
	}
	exec := func(statement string, values ...any) (changed int64, err error) {
		done, err := pool.Exec(context.Background(), statement, values...) // prepares it on each connection once
		return done.RowsAffected(), err
	}
	rows, err := raw.OpenPostgres(store, stdlib.OpenDBFromPool(pool), exec)
	if err != nil {
		return server.Site{}, err
	}
	return minimal.New(connected{rows, pool}), nil
}

// connected is rows with their connections.
type connected struct {
	*raw.Postgres
	pool *pgxpool.Pool
}

func (c connected) Close() error {
	c.pool.Close()
	return nil
}

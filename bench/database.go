package main

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	_ "github.com/go-sql-driver/mysql" // the drivers that Pasteport uses
	_ "github.com/jackc/pgx/v5/stdlib"
)

// engines are the database servers by the suffix of the server name.
var engines = map[string]struct{ driver, admin, url string }{
	"postgres": {"pgx", "postgres://postgres@127.0.0.1:5432/postgres", "postgres://postgres@127.0.0.1:5432/"},
	"mariadb":  {"mysql", "root@tcp(127.0.0.1:3306)/", "mysql://root@127.0.0.1:3306/"},
}

// createDatabase creates a separate database for one server.
func createDatabase(kind string) (address string, drop func() error, err error) {
	engine := engines[kind]
	name := "bench_" + strings.ToLower(rand.Text())
	run := func(statement string) error {
		db, err := sql.Open(engine.driver, engine.admin)
		if err != nil {
			return err
		}
		_, err = db.Exec(statement)
		return errors.Join(err, db.Close())
	}
	if err := run("CREATE DATABASE " + name); err != nil {
		return "", func() error { return nil }, fmt.Errorf("making a database on %s: %w", kind, err)
	}
	return engine.url + name, func() error { return run("DROP DATABASE " + name) }, nil
}

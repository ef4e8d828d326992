// Package postgres lets package persistence open stores on PostgreSQL. Import it for that alone:
//
//	import _ "github.com/pasteport/pasteport/adapters/persistence/postgres"
package postgres

import (
	"database/sql"
	"errors"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/internal/drivers"
)

func init() { drivers.Register(drivers.Driver{Open: open, Code: code}, "postgres", "postgresql") }

const connectLimit = 2 * time.Second

func open(address *url.URL) (*sql.DB, gorm.Dialector, error) {
	config, err := pgx.ParseConfig(address.String())
	if err != nil {
		return nil, nil, err
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectLimit
	}
	if config.ValidateConnect == nil {
		// Choose the primary among several hosts.
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	pool := stdlib.OpenDB(*config)
	return pool, postgres.New(postgres.Config{Conn: pool}), nil
}

func code(err error) string {
	var failure *pgconn.PgError
	if !errors.As(err, &failure) {
		return ""
	}
	return failure.Code
}

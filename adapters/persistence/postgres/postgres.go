// Package postgres lets package persistence open stores on PostgreSQL. Import it for that alone:
//
//	import _ "github.com/pasteport/pasteport/adapters/persistence/postgres"
package postgres

import (
	"context"
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

func init() {
	server := drivers.Driver{Open: open, Code: code}
	drivers.ByScheme["postgres"], drivers.ByScheme["postgresql"] = server, server
}

const connectLimit = 2 * time.Second

// session sets what transactions rely on, whatever the server, role and address set. It is a
// statement, because PgBouncer refuses most settings that come with a login. In transaction mode,
// PgBouncer applies it to one connection to the server; the others keep the settings of the role.
const session = "SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off"

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
	validate := config.ValidateConnect
	config.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if _, err := conn.Exec(ctx, session).ReadAll(); err != nil {
			return err
		}
		return validate(ctx, conn)
	}
	pool := stdlib.OpenDB(*config)
	return pool, postgres.New(postgres.Config{Conn: pool}), nil
}

func code(err error) string {
	if failure, found := errors.AsType[*pgconn.PgError](err); found {
		return failure.Code
	}
	return ""
}

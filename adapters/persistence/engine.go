package persistence

import (
	"errors"
	"strings"

	"github.com/pasteport/pasteport/adapters/persistence/internal/drivers"
	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
)

// engine is what differs between the databases that a Store can be in.
type engine struct {
	name   string
	driver string            // the package to import for it; "" for SQLite
	schema *strings.Replacer // replaces the words in braces of a migration by SQL
	risks  []risk            // of losing an answered commit
	clock  string            // the query for the time of a server in milliseconds
}

// risk is a query for whether a setting is dangerous, and the error then.
type risk struct{ query, problem string }

var sqliteEngine = engine{
	name: "SQLite",
	schema: strings.NewReplacer(
		"{word}", "TEXT", "{digest}", "BLOB", "{bytes}", "BLOB", "{json}", "TEXT", "{integer}", "INTEGER",
		"{rows}", "STRICT",
	),
	risks: []risk{{"SELECT journal_mode <> 'wal' FROM pragma_journal_mode",
		"SQLite cannot keep a write-ahead log beside the file: put the file on a local disk"}},
}

var postgresEngine = engine{
	name:   "PostgreSQL",
	driver: "github.com/pasteport/pasteport/adapters/persistence/postgres",
	schema: strings.NewReplacer(
		"{word}", "TEXT", "{digest}", "BYTEA", "{bytes}", "BYTEA", "{json}", "TEXT", "{integer}", "BIGINT",
		"{rows}", "",
	),
	risks: []risk{
		{"SELECT current_setting('fsync') = 'off'",
			"PostgreSQL runs with fsync=off: a power failure would destroy the database"},
		{"SELECT current_setting('synchronous_commit') = 'off'",
			"PostgreSQL runs with synchronous_commit=off: a power failure would bring revoked tokens back: " +
				"ALTER ROLE … SET synchronous_commit = on"},
	},
	clock: "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
}

var mysqlEngine = engine{
	name:   "MySQL",
	driver: "github.com/pasteport/pasteport/adapters/persistence/mysql",
	schema: strings.NewReplacer(
		"{word}", "VARCHAR(64)", "{digest}", "VARBINARY(32)", "{bytes}", "MEDIUMBLOB", "{json}", "MEDIUMTEXT",
		"{integer}", "BIGINT", "{rows}", "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
	),
	risks: []risk{
		{"SELECT @@GLOBAL.innodb_flush_log_at_trx_commit <> 1",
			"MySQL runs with another innodb_flush_log_at_trx_commit than 1: a power failure would bring revoked " +
				"tokens back: set it to 1"},
		{"SELECT @@GLOBAL.log_bin = 1 AND @@GLOBAL.sync_binlog <> 1",
			"MySQL runs with a binary log and another sync_binlog than 1: a power failure would bring revoked tokens " +
				"back: set it to 1"},
	},
	clock: "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000",
}

// The error codes that the store distinguishes, by engine.
const (
	pgUnique      = "23505"
	pgSerialize   = "40001"
	pgDeadlock    = "40P01"
	pgStalePlan   = "0A000" // another replica has migrated the schema since the statement was prepared
	pgTableExists = "42P07" // another replica is migrating the schema
	pgTypeExists  = "42710" // likewise: PostgreSQL creates the type of the rows before the table
	pgHasColumn   = "42701" // another replica has added the column
	mysqlUnique   = "1062"
	mysqlDeadlock = "1213" // also when another node of a cluster was faster with a change
	mysqlStale    = "1020" // with innodb_snapshot_isolation, the default of MariaDB 11.8
)

var (
	// A prepared statement exists already, or is missing: PgBouncer has switched the connection.
	pgPrepared  = []string{"42P05", "26000"}
	mysqlExists = []string{"1050", "1060", "1061"} // a table, a column or a key
)

func isDuplicate(err error) bool {
	code := drivers.Code(err)
	return sqlite.IsDuplicate(err) || code == pgUnique || code == mysqlUnique
}

// overtaken is failed for an insertion of a row that the transaction has not found: for a duplicate
// it adds errOvertaken.
func overtaken(err error, doing string) error {
	if isDuplicate(err) {
		return errors.Join(failed(doing, err), errOvertaken)
	}
	return failed(doing, err)
}

// collides reports that the same work may succeed when it runs again.
func collides(err error) bool {
	switch drivers.Code(err) {
	case pgSerialize, pgDeadlock, pgStalePlan, pgTableExists, pgTypeExists, pgHasColumn, mysqlDeadlock, mysqlStale:
		return true
	}
	return errors.Is(err, errOvertaken)
}

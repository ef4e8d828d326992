package persistence

import (
	"errors"
	"fmt"

	"github.com/go-gormigrate/gormigrate/v2"
	"gorm.io/gorm"
)

// migrations only ever grow: a database goes forward and never back (H7). SCHEMA.md explains what they make.
var migrations = []*gormigrate.Migration{
	{ID: "0001_grants_and_secrets", Migrate: run(
		`CREATE TABLE grants (
			id TEXT NOT NULL PRIMARY KEY,
			client_id TEXT NOT NULL, client_name TEXT NOT NULL, redirect_uri TEXT NOT NULL,
			resource TEXT NOT NULL, scopes TEXT NOT NULL, subject TEXT NOT NULL, roles TEXT NOT NULL,
			state TEXT NOT NULL, end_reason TEXT NOT NULL,
			created_at INTEGER, ended_at INTEGER, last_used_at INTEGER, verified_at INTEGER,
			idle_end INTEGER, absolute_end INTEGER, forget_after INTEGER,
			code_digest BLOB, code_challenge TEXT NOT NULL, code_expires_at INTEGER, redeemed_at INTEGER,
			generation INTEGER NOT NULL, rotated_at INTEGER, successor_box BLOB,
			host_print BLOB, host_box BLOB, host_wrap BLOB
		) STRICT`,
		`CREATE INDEX grants_by_host ON grants (host_print)`,
		`CREATE INDEX grants_by_end ON grants (forget_after)`,
		`CREATE TABLE secrets (
			digest BLOB NOT NULL PRIMARY KEY CHECK (length(digest) = 32),
			grant_id TEXT NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
			kind TEXT NOT NULL, generation INTEGER NOT NULL, scopes TEXT NOT NULL,
			host_wrap BLOB, revoked_at INTEGER, forget_after INTEGER
		) STRICT, WITHOUT ROWID`,
		`CREATE INDEX secrets_by_grant ON secrets (grant_id)`,
		`CREATE INDEX secrets_by_end ON secrets (forget_after)`,
	)},
	{ID: "0002_client_authentication", Migrate: run(
		`ALTER TABLE grants ADD COLUMN auth_method TEXT NOT NULL DEFAULT 'none'`,
		`CREATE TABLE used_assertions (
			digest BLOB NOT NULL PRIMARY KEY CHECK (length(digest) = 32), forget_after INTEGER NOT NULL
		) STRICT, WITHOUT ROWID`,
		`CREATE INDEX used_assertions_by_end ON used_assertions (forget_after)`,
	)},
	{ID: "0003_end_of_grace", Migrate: run(
		`ALTER TABLE grants RENAME COLUMN rotated_at TO grace_end`,
		`UPDATE grants SET grace_end = grace_end + 60000`, // the window by default, so that a refresh on its way is not taken for reuse
		`CREATE INDEX grants_by_grace ON grants (grace_end) WHERE successor_box IS NOT NULL`,
	)},
}

// run executes the statements one at a time: of several in one text a prepared statement runs only the first.
func run(statements ...string) gormigrate.MigrateFunc {
	return func(tx *gorm.DB) error {
		for _, statement := range statements {
			if err := tx.Exec(statement).Error; err != nil {
				return err
			}
		}
		return nil
	}
}

// migrate expects to be inside a transaction.
func migrate(tx *gorm.DB) error {
	options := &gormigrate.Options{TableName: "schema_migrations", IDColumnName: "id", ValidateUnknownMigrations: true}
	err := gormigrate.New(tx, options, migrations).Migrate()
	if errors.Is(err, gormigrate.ErrUnknownPastMigration) {
		return fmt.Errorf("a newer version of Pasteport has written it, which has to be used from now on: %w", err)
	}
	return failed("migrating the schema", err)
}

package persistence

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/go-gormigrate/gormigrate/v2"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/internal/drivers"
)

// migration is one step of the schema. Words in braces stand for SQL that differs between engines.
type migration struct {
	id         string
	statements []string
}

// migrations are only ever appended to: a database goes forward and never back.
// SCHEMA.md explains the tables.
var migrations = []migration{
	{id: "0001_codes_and_grants_with_tools", statements: []string{
		`CREATE TABLE authorization_codes (
			id {id} NOT NULL PRIMARY KEY, version {integer} NOT NULL DEFAULT 1, digest {digest},
			code_challenge {text} NOT NULL, client_id {text} NOT NULL, client_name {text} NOT NULL,
			auth_method {word} NOT NULL, redirect_uri {text} NOT NULL,
			resource {text} NOT NULL, scopes {text} NOT NULL, subject {text} NOT NULL,
			account {text} NOT NULL, token_id {text} NOT NULL, roles {text} NOT NULL,
			state {word} NOT NULL, end_reason {word} NOT NULL,
			created_at {integer}, expires_at {integer}, grant_end {integer}, redeemed_at {integer},
			withdrawn_at {integer}, forget_after {integer}, host_print {digest}, host_box {bytes}, host_wrap {bytes},
			host_key {digest}, host_new {bytes}
		) {keyed}`,
		`CREATE INDEX authorization_codes_by_host ON authorization_codes (host_print, state)`,
		`CREATE INDEX authorization_codes_by_end ON authorization_codes (forget_after)`,
		`CREATE TABLE grants (
			id {id} NOT NULL PRIMARY KEY, version {integer} NOT NULL DEFAULT 1,
			client_id {text} NOT NULL, client_name {text} NOT NULL,
			auth_method {word} NOT NULL, redirect_uri {text} NOT NULL,
			resource {text} NOT NULL, scopes {text} NOT NULL, subject {text} NOT NULL,
			account {text} NOT NULL, token_id {text} NOT NULL, roles {text} NOT NULL,
			state {word} NOT NULL, end_reason {word} NOT NULL,
			created_at {integer}, ended_at {integer}, revoked_at {integer}, last_used_at {integer},
			last_used_token {integer} NOT NULL, verified_at {integer}, idle_end {integer}, absolute_end {integer},
			forget_after {integer}, generation {integer} NOT NULL, refresh_digest {digest}, rotations {json} NOT NULL,
			issued_access {integer} NOT NULL, access_tokens {json} NOT NULL,
			host_print {digest}, host_box {bytes}, host_wrap {bytes},
			host_key {digest}, host_new {bytes}, tools {text} NOT NULL
		) {updated}`,
		`CREATE INDEX grants_by_host ON grants (host_print, state)`,
		`CREATE INDEX grants_by_end ON grants (forget_after)`,
		`CREATE INDEX grants_by_revocation ON grants (revoked_at) WHERE revoked_at IS NOT NULL`,
		`CREATE TABLE used_assertions (
			digest {digest} NOT NULL PRIMARY KEY CHECK (length(digest) = 32), forget_after {integer} NOT NULL
		) {keyed}`,
		`CREATE INDEX used_assertions_by_end ON used_assertions (forget_after)`,
		`CREATE TABLE client_documents (
			digest {digest} NOT NULL PRIMARY KEY CHECK (length(digest) = 32), url {text} NOT NULL,
			body {bytes}, checked_at {integer} NOT NULL, forget_after {integer} NOT NULL
		) {rows}`,
		`CREATE INDEX client_documents_by_end ON client_documents (forget_after)`,
		`CREATE TABLE trace_steps (
			number {serial}, at {integer} NOT NULL, kind {text} NOT NULL, outcome {text} NOT NULL,
			attempt {text} NOT NULL, request {text} NOT NULL, client {text} NOT NULL, address {text} NOT NULL,
			agent {text} NOT NULL, rule {text} NOT NULL, reason {text} NOT NULL
		) {rows}`,
		`CREATE TABLE secret_witness (id {integer} NOT NULL PRIMARY KEY, print {digest} NOT NULL) {rows}`,
	}},
}

// executeAll runs one statement at a time: a prepared statement runs only the first of several.
func executeAll(tx *gorm.DB, e engine, statements ...string) error {
	for _, statement := range statements {
		if err := tx.Exec(e.ddl(statement)).Error; err != nil && !isDoneBefore(err) {
			return err
		}
	}
	return nil
}

// isDoneBefore reports that an interrupted migration has run the statement. Only MySQL leaves
// migrations half done: it commits each statement.
func isDoneBefore(err error) bool {
	return slices.Contains([]string{mysqlTableHere, mysqlColumnHere, mysqlKeyHere}, drivers.Code(err))
}

// unreleased are the first migrations of the schemas before the first release.
var unreleased = []string{"0001_grants_and_secrets", "0001_one_row_for_each_grant", "0001_grants_in_one_row",
	"0001_codes_and_grants", "0001_codes_and_grants_in_json",
	"0001_codes_grants_and_documents"}

var errUnreleased = errors.New("a version before the first release has written it, which no later one reads: " +
	"name a new data folder or database, and people connect once more")

var errNewer = errors.New("a newer version of Pasteport has written it, which has to be used from now on")

// refuseOther refuses a database with migrations that this program does not have.
func refuseOther(applied []string) error {
	for _, id := range applied {
		switch {
		case slices.Contains(unreleased, id):
			return errUnreleased
		case !slices.ContainsFunc(migrations, func(known migration) bool { return known.id == id }):
			return errNewer
		}
	}
	return nil
}

// migrate expects to be inside a transaction, and returns the migrations that were missing.
func migrate(tx *gorm.DB, e engine) (applied []string, err error) {
	before, err := appliedMigrations(tx)
	if err = cmp.Or(err, refuseOther(before)); err != nil {
		return nil, err
	}
	steps := make([]*gormigrate.Migration, 0, len(migrations))
	for _, step := range migrations {
		steps = append(steps, &gormigrate.Migration{ID: step.id, Migrate: func(tx *gorm.DB) error {
			applied = append(applied, step.id)
			return executeAll(tx, e, step.statements...)
		}})
	}
	err = gormigrate.New(tx, &gormigrate.Options{TableName: "schema_migrations", IDColumnName: "id"}, steps).Migrate()
	if isDoneBefore(err) { // through another node of a cluster: the lock holds on one node only
		return applied, errors.Join(failed("migrating the schema", err), errOvertaken)
	}
	return applied, overtaken(err, "migrating the schema")
}

// prepare migrates the schema and creates the server secret, which processes that start together do
// once.
func (s *Store) prepare() error {
	_, err := s.migrate(s.createSecret)
	return err
}

// migrate migrates and then runs also, both under a lock.
func (s *Store) migrate(also func(tx *gorm.DB) error) (applied []string, err error) {
	if err := s.durable(); err != nil {
		return nil, err
	}
	work := func(tx *gorm.DB) (err error) {
		if applied, err = migrate(tx, s.engine); err != nil {
			return err
		}
		return also(tx)
	}
	ctx, cancel := context.WithTimeout(context.Background(), migrationLimit)
	defer cancel()
	if s.file != nil {
		return applied, s.transaction(ctx, work)
	}
	err = s.retryCollisions(ctx, func() error {
		return inTransaction(s.writer.WithContext(ctx), func(tx *gorm.DB) error {
			if err := s.engine.lock(tx); err != nil {
				return failed("waiting for other replicas to migrate the schema", err)
			}
			return errors.Join(work(tx), s.engine.unlock(tx))
		})
	})
	return applied, err
}

// durable refuses settings under which answered commits can be lost.
func (s *Store) durable() error {
	if s.engine.server {
		return s.engine.durable(s.writer)
	}
	return s.file.CheckPragmas()
}

// compare refuses a schema that is not the one of this program, and such settings.
func (s *Store) compare() error { return cmp.Or(s.compareSchema(), s.durable()) }

// compareSchema refuses a database with other migrations than this program's.
func (s *Store) compareSchema() error {
	applied, err := appliedMigrations(s.reader)
	if err = cmp.Or(err, refuseOther(applied)); err != nil {
		return err
	}
	switch len(applied) {
	case len(migrations):
		return nil
	case 0:
		return errors.New("it is not a database of Pasteport: name the data of a service, by data or database")
	}
	return errors.New("an older version of Pasteport has written it: \"pasteport store migrate\" of this version " +
		"brings it up to date")
}

// appliedMigrations returns nothing for a database without the table of migrations.
func appliedMigrations(db *gorm.DB) (applied []string, err error) {
	tables, err := db.Migrator().GetTables() // HasTable would hide an error
	if err != nil {
		return nil, failed("looking for the schema", err)
	}
	if !slices.Contains(tables, "schema_migrations") {
		return nil, nil
	}
	err = db.Raw("SELECT id FROM schema_migrations ORDER BY id").Scan(&applied).Error
	return applied, failed("reading the version of the schema", err)
}

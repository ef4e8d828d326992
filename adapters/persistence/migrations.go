package persistence

import (
	"context"
	"errors"
	"slices"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/internal/drivers"
)

// migration is one step of the schema. Words in braces stand for SQL that differs between engines.
type migration struct {
	id         string
	statements []string
}

// migrations only grow, because a database never goes back. SCHEMA.md explains the tables.
var migrations = []migration{
	{id: "0001_codes_grants_and_attempts", statements: []string{
		`CREATE TABLE schema_migrations (id {word} NOT NULL PRIMARY KEY) {rows}`,
		`CREATE TABLE authorization_codes (
			id {word} NOT NULL PRIMARY KEY, version {integer} NOT NULL DEFAULT 1, digest {digest},
			code_challenge TEXT NOT NULL, client_id TEXT NOT NULL, client_name TEXT NOT NULL,
			auth_method {word} NOT NULL, redirect_uri TEXT NOT NULL,
			resource TEXT NOT NULL, scopes TEXT NOT NULL, subject TEXT NOT NULL,
			account TEXT NOT NULL, token_id TEXT NOT NULL, roles TEXT NOT NULL,
			state {word} NOT NULL, end_reason {word} NOT NULL,
			created_at {integer}, expires_at {integer}, grant_end {integer}, redeemed_at {integer},
			withdrawn_at {integer}, forget_after {integer}, host_print {digest}, host_box {bytes}, host_wrap {bytes},
			host_key {digest}, host_new {bytes}
		) {rows}`,
		`CREATE INDEX authorization_codes_by_host ON authorization_codes (host_print, state)`,
		`CREATE INDEX authorization_codes_by_end ON authorization_codes (forget_after)`,
		`CREATE TABLE grants (
			id {word} NOT NULL PRIMARY KEY, version {integer} NOT NULL DEFAULT 1,
			client_id TEXT NOT NULL, client_name TEXT NOT NULL,
			auth_method {word} NOT NULL, redirect_uri TEXT NOT NULL,
			resource TEXT NOT NULL, scopes TEXT NOT NULL, subject TEXT NOT NULL,
			account TEXT NOT NULL, token_id TEXT NOT NULL, roles TEXT NOT NULL,
			state {word} NOT NULL, end_reason {word} NOT NULL,
			created_at {integer}, ended_at {integer}, revoked_at {integer}, last_used_at {integer},
			last_used_token {integer} NOT NULL, verified_at {integer}, idle_end {integer}, absolute_end {integer},
			forget_after {integer}, generation {integer} NOT NULL, refresh_digest {digest}, rotations {json} NOT NULL,
			issued_access {integer} NOT NULL, access_tokens {json} NOT NULL,
			host_print {digest}, host_box {bytes}, host_wrap {bytes},
			host_key {digest}, host_new {bytes}, tools TEXT NOT NULL
		) {rows}`,
		`CREATE INDEX grants_by_host ON grants (host_print, state)`,
		`CREATE INDEX grants_by_end ON grants (forget_after)`,
		`CREATE INDEX grants_by_revocation ON grants (revoked_at)`,
		`CREATE TABLE used_assertions (
			digest {digest} NOT NULL PRIMARY KEY CHECK (length(digest) = 32), forget_after {integer} NOT NULL
		) {rows}`,
		`CREATE INDEX used_assertions_by_end ON used_assertions (forget_after)`,
		`CREATE TABLE client_documents (
			digest {digest} NOT NULL PRIMARY KEY CHECK (length(digest) = 32), url TEXT NOT NULL,
			body {bytes}, checked_at {integer} NOT NULL, forget_after {integer} NOT NULL
		) {rows}`,
		`CREATE INDEX client_documents_by_end ON client_documents (forget_after)`,
		`CREATE TABLE attempts (
			id {word} NOT NULL PRIMARY KEY, client TEXT NOT NULL, agent TEXT NOT NULL, address TEXT NOT NULL,
			begun {integer} NOT NULL, at {integer} NOT NULL, progress {integer} NOT NULL,
			last_step TEXT NOT NULL, steps {json} NOT NULL
		) {rows}`,
		`CREATE INDEX attempts_by_time ON attempts (at)`,
		`CREATE TABLE secret_witness (id {integer} NOT NULL PRIMARY KEY, print {digest} NOT NULL) {rows}`,
	}},
}

// missing returns the migrations that a database does not have yet. It refuses a database with
// others than this program's.
func missing(db *gorm.DB) ([]migration, error) {
	var applied []string
	tables, err := db.Migrator().GetTables() // HasTable would hide an error
	if err == nil && slices.Contains(tables, "schema_migrations") {
		err = db.Raw("SELECT id FROM schema_migrations ORDER BY id").Scan(&applied).Error
	}
	if err != nil {
		return nil, failed("reading the version of the schema", err)
	}
	for i, id := range applied {
		if i >= len(migrations) || migrations[i].id != id {
			return nil, errors.New("another version of Pasteport has written it: use that version, or name a new " +
				"data folder or database, and people connect once more")
		}
	}
	return migrations[len(applied):], nil
}

// prepare migrates the schema, and creates the server secret of an unused database.
func (s *Store) prepare() error {
	if _, err := s.migrate(); err != nil {
		return err
	}
	return s.createSecret()
}

// migrate applies and returns the missing migrations. Replicas may migrate at once: one of them
// commits, and the others collide and try again; on MySQL, each may run some of the statements.
func (s *Store) migrate() (applied []string, err error) {
	if err := s.durable(); err != nil {
		return nil, err
	}
	work := func(tx *gorm.DB) error {
		steps, err := missing(tx)
		if err != nil {
			return err
		}
		applied = nil
		for _, step := range steps {
			applied = append(applied, step.id)
			noting := "INSERT INTO schema_migrations (id) VALUES ('" + step.id + "')"
			// One by one: a prepared statement runs only the first of several.
			for _, statement := range append(step.statements, noting) {
				err := tx.Exec(s.engine.schema.Replace(statement)).Error
				// MySQL commits each statement, so another process may have run this one.
				if err != nil && !slices.Contains(mysqlExists, drivers.Code(err)) {
					return overtaken(err, "migrating the schema")
				}
			}
		}
		return nil
	}
	ctx := context.Background()
	err = s.retryCollisions(ctx, func() error { return s.longTransaction(ctx, work) })
	return applied, err
}

// durable refuses settings under which answered commits can be lost.
func (s *Store) durable() error {
	for _, risk := range s.engine.risks {
		var isDangerous bool
		if err := s.writer.Raw(risk.query).Scan(&isDangerous).Error; err != nil {
			return failed("asking when commits are on the disk", err)
		}
		if isDangerous {
			return errors.New(risk.problem)
		}
	}
	return nil
}

// compareSchema refuses a database with other migrations than this program's.
func (s *Store) compareSchema() error {
	switch lacking, err := missing(s.reader); {
	case err != nil:
		return err
	case len(lacking) == len(migrations):
		return errors.New("it is not a database of Pasteport: name the data of a service, by data or database")
	case len(lacking) > 0:
		return errors.New("an older version of Pasteport has written it: \"pasteport store migrate\" of this version " +
			"brings it up to date")
	}
	return nil
}

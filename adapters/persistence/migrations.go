package persistence

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-gormigrate/gormigrate/v2"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/internal/drivers"
)

// migration is one step of the schema. Words in braces stand for SQL that differs between engines.
type migration struct {
	id         string
	statements []string
	own        func(engine, *gorm.DB) error // runs instead of the statements, where the engines differ more
}

// migrations are only ever appended to: a database goes forward and never back (H7). SCHEMA.md explains the tables.
var migrations = []migration{
	{id: "0001_grants_and_secrets", statements: []string{
		`CREATE TABLE grants (
			id {id} NOT NULL PRIMARY KEY,
			client_id {text} NOT NULL, client_name {text} NOT NULL, redirect_uri {text} NOT NULL,
			resource {text} NOT NULL, scopes {text} NOT NULL, subject {text} NOT NULL, roles {text} NOT NULL,
			state {text} NOT NULL, end_reason {text} NOT NULL,
			created_at {integer}, ended_at {integer}, last_used_at {integer}, verified_at {integer},
			idle_end {integer}, absolute_end {integer}, forget_after {integer},
			code_digest {bytes}, code_challenge {text} NOT NULL, code_expires_at {integer}, redeemed_at {integer},
			generation {integer} NOT NULL, rotated_at {integer}, successor_box {bytes},
			host_print {digest}, host_box {bytes}, host_wrap {bytes}
		) {rows}`,
		`CREATE INDEX grants_by_host ON grants (host_print)`,
		`CREATE INDEX grants_by_end ON grants (forget_after)`,
		`CREATE TABLE secrets (
			digest {digest} NOT NULL PRIMARY KEY CHECK (length(digest) = 32),
			grant_id {id} NOT NULL,
			kind {text} NOT NULL, generation {integer} NOT NULL, scopes {text} NOT NULL,
			host_wrap {bytes}, revoked_at {integer}, forget_after {integer},
			FOREIGN KEY (grant_id) REFERENCES grants (id) ON DELETE CASCADE
		) {keyed}`,
		`CREATE INDEX secrets_by_grant ON secrets (grant_id)`,
		`CREATE INDEX secrets_by_end ON secrets (forget_after)`,
	}},
	{id: "0002_client_authentication", statements: []string{
		`ALTER TABLE grants ADD COLUMN auth_method {word} NOT NULL DEFAULT 'none'`,
		`CREATE TABLE used_assertions (
			digest {digest} NOT NULL PRIMARY KEY CHECK (length(digest) = 32), forget_after {integer} NOT NULL
		) {keyed}`,
		`CREATE INDEX used_assertions_by_end ON used_assertions (forget_after)`,
	}},
	{id: "0003_end_of_grace", statements: []string{
		`ALTER TABLE grants RENAME COLUMN rotated_at TO grace_end`,
		`UPDATE grants SET grace_end = grace_end + 60000`, // the window by default, so that a refresh on its way is not taken for reuse
		`CREATE INDEX grants_by_grace ON grants (grace_end) WHERE successor_box IS NOT NULL`,
	}},
	{id: "0004_trace", statements: []string{
		`CREATE TABLE trace_steps (
			number {serial}, at {integer} NOT NULL,
			kind {text} NOT NULL, outcome {text} NOT NULL, attempt {text} NOT NULL, request {text} NOT NULL,
			client {text} NOT NULL, address {text} NOT NULL, agent {text} NOT NULL, rule {text} NOT NULL, reason {text} NOT NULL
		) {rows}`,
	}},
	{id: "0005_watching_ends", statements: []string{
		`CREATE INDEX grants_by_ended_at ON grants (ended_at) WHERE ended_at IS NOT NULL`,
		`CREATE INDEX secrets_by_revoked_at ON secrets (revoked_at) WHERE revoked_at IS NOT NULL`,
	}},
	{id: "0006_counters", statements: []string{
		`CREATE TABLE counters (
			name {digest} NOT NULL PRIMARY KEY CHECK (length(name) = 32), taken {integer} NOT NULL, ends_at {integer} NOT NULL
		) {keyed}`,
		`CREATE INDEX counters_by_end ON counters (ends_at)`,
	}},
	{id: "0007_shared_secret", statements: []string{
		`CREATE TABLE secret_witness (id {integer} NOT NULL PRIMARY KEY, print {digest} NOT NULL) {rows}`,
	}},
	{id: "0008_secrets_stand_alone", own: func(e engine, tx *gorm.DB) error { return e.dropForeignKey(tx) }},
	{id: "0009_predecessors", own: linkPredecessors},
	{id: "0010_authorization_codes", statements: authorizationCodes},
	{id: "0011_client_documents", statements: []string{
		`CREATE TABLE client_documents (
			digest {digest} NOT NULL PRIMARY KEY CHECK (length(digest) = 32), kind {word} NOT NULL, url {text} NOT NULL, owner {digest}, body {bytes},
			etag {text} NOT NULL, last_modified {text} NOT NULL, checked_at {integer} NOT NULL, fresh_until {integer} NOT NULL, forget_after {integer} NOT NULL
		) {rows}`,
		`CREATE INDEX client_documents_by_end ON client_documents (forget_after)`,
	}},
}

// authorizationCodes moves the codes from the grants to a separate table. A grant whose code was not redeemed becomes a code and is deleted. Redeemed
// codes are kept if they are at most a day older than the newest one. MySQL commits at each change of the schema, so the codes are copied in one
// transaction after the table is created and before the first column is dropped.
var authorizationCodes = []string{
	`CREATE TABLE authorization_codes (
		id {id} NOT NULL PRIMARY KEY, digest {digest} NOT NULL CHECK (length(digest) = 32), code_challenge {text} NOT NULL,
		client_id {text} NOT NULL, client_name {text} NOT NULL, auth_method {word} NOT NULL, redirect_uri {text} NOT NULL,
		resource {text} NOT NULL, scopes {text} NOT NULL, subject {text} NOT NULL, roles {text} NOT NULL,
		state {word} NOT NULL, end_reason {text} NOT NULL,
		created_at {integer}, expires_at {integer}, redeemed_at {integer}, withdrawn_at {integer}, forget_after {integer},
		host_print {digest}, host_box {bytes}, host_wrap {bytes}
	) {keyed}`,
	`CREATE UNIQUE INDEX authorization_codes_by_digest ON authorization_codes (digest)`,
	`CREATE INDEX authorization_codes_by_host ON authorization_codes (host_print, state)`,
	`CREATE INDEX authorization_codes_by_end ON authorization_codes (forget_after)`,
	`INSERT INTO authorization_codes (id, digest, code_challenge, client_id, client_name, auth_method, redirect_uri, resource, scopes, subject, roles,
			state, end_reason, created_at, expires_at, redeemed_at, withdrawn_at, forget_after, host_print, host_box, host_wrap)
		SELECT id, code_digest, code_challenge, client_id, client_name, auth_method, redirect_uri, resource, scopes, subject, roles,
			CASE WHEN redeemed_at IS NOT NULL THEN 'redeemed' WHEN state = 'pending' THEN 'issued' ELSE 'withdrawn' END,
			CASE WHEN redeemed_at IS NULL THEN end_reason ELSE '' END, created_at, code_expires_at, redeemed_at,
			CASE WHEN redeemed_at IS NULL THEN ended_at END,
			CASE WHEN redeemed_at IS NULL THEN forget_after ELSE redeemed_at + 86400000 END, host_print,
			CASE WHEN redeemed_at IS NULL THEN host_box END, CASE WHEN redeemed_at IS NULL THEN host_wrap END
		FROM grants WHERE (redeemed_at IS NULL OR redeemed_at > (SELECT max(redeemed_at) FROM grants) - 86400000)
			AND id NOT IN (SELECT id FROM authorization_codes)`,
	`DELETE FROM secrets WHERE kind = 'ppc_'`,
	`DELETE FROM grants WHERE redeemed_at IS NULL`,
	`ALTER TABLE grants DROP COLUMN code_digest`,
	`ALTER TABLE grants DROP COLUMN code_challenge`,
	`ALTER TABLE grants DROP COLUMN code_expires_at`,
	`ALTER TABLE grants DROP COLUMN redeemed_at`,
}

// run executes the statements one at a time: a prepared statement runs only the first of several.
func (m migration) run(e engine, tx *gorm.DB) error {
	if m.own != nil {
		return m.own(e, tx)
	}
	return executeAll(tx, e, m.statements...)
}

// linkPredecessors adds the columns by which refresh tokens form a chain, and removes them from the index secrets_by_end. A server keeps them in the
// index, as rows with NULL: rebuilding it would block writers.
func linkPredecessors(e engine, tx *gorm.DB) error {
	err := executeAll(tx, e, `ALTER TABLE grants ADD COLUMN refresh_digest {digest}`, `ALTER TABLE secrets ADD COLUMN predecessor {digest}`)
	if err != nil || e.server {
		return err
	}
	return executeAll(tx, e, `DROP INDEX secrets_by_end`, `CREATE INDEX secrets_by_end ON secrets (forget_after) WHERE forget_after IS NOT NULL`)
}

const secretsByWrap = `CREATE INDEX secrets_by_wrap ON secrets (grant_id) WHERE host_wrap IS NOT NULL`

func executeAll(tx *gorm.DB, e engine, statements ...string) error {
	for _, statement := range statements {
		if err := tx.Exec(e.ddl(statement)).Error; err != nil && !isDoneBefore(err) {
			return err
		}
	}
	return nil
}

// isDoneBefore reports that an interrupted migration has run the statement. Only MySQL leaves migrations half done: it commits each statement.
func isDoneBefore(err error) bool {
	return slices.Contains([]string{mysqlTableHere, mysqlFieldHere, mysqlKeyHere, mysqlNoField, mysqlNoKey, mysqlNoDrop}, drivers.Code(err))
}

var errNewer = errors.New("a newer version of Pasteport has written it, which has to be used from now on")

// migrate expects to be inside a transaction, and returns the migrations that were missing.
func migrate(tx *gorm.DB, e engine, steps []migration) (applied []string, err error) {
	options := &gormigrate.Options{TableName: "schema_migrations", IDColumnName: "id", ValidateUnknownMigrations: true}
	all := make([]*gormigrate.Migration, 0, len(steps))
	for _, step := range steps {
		all = append(all, &gormigrate.Migration{ID: step.id, Migrate: func(tx *gorm.DB) error {
			applied = append(applied, step.id)
			return step.run(e, tx)
		}})
	}
	err = gormigrate.New(tx, options, all).Migrate()
	if errors.Is(err, gormigrate.ErrUnknownPastMigration) {
		return nil, fmt.Errorf("%w: %w", errNewer, err)
	}
	return applied, failed("migrating the schema", err)
}

// compareSchema refuses a database with other migrations than this program's.
func (s *Store) compareSchema() error {
	var applied []string
	err := s.reader.Raw("SELECT id FROM schema_migrations ORDER BY id").Scan(&applied).Error
	if err != nil && !isMissingTable(err) {
		return failed("reading the schema's version", err)
	}
	known := make([]string, 0, len(migrations))
	for _, migration := range migrations {
		known = append(known, migration.id)
	}
	switch {
	case slices.Equal(applied, known):
		return nil
	case len(applied) == 0:
		return errors.New("it is none of Pasteport's: name the data of a service, by data or database")
	case !slices.Contains(known, applied[len(applied)-1]):
		return errNewer
	}
	return errors.New("an older version of Pasteport has written it: \"pasteport store migrate\" of this version brings it up to date")
}

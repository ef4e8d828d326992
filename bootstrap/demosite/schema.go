package demosite

import (
	"time"

	"github.com/go-gormigrate/gormigrate/v2"
	"gorm.io/gorm"
)

// migrations is append-only: a released migration must not change.
var migrations = []*gormigrate.Migration{
	{ID: "0001 articles", Migrate: run(articlesTable)},
	{ID: "0002 tokens", Migrate: run(tokensTable)},
	{ID: "0003 samples", Migrate: addSamples},
}

const articlesTable = `CREATE TABLE articles (
	id        INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice, because cursors hold it
	slug      TEXT NOT NULL UNIQUE,
	title     TEXT NOT NULL,
	body      TEXT NOT NULL,
	author    TEXT NOT NULL,
	state     TEXT NOT NULL CHECK (state IN ('draft', 'published', 'archived')),
	created   DATETIME NOT NULL,
	updated   DATETIME NOT NULL,
	published DATETIME
)`

const tokensTable = `CREATE TABLE tokens (
	digest BLOB PRIMARY KEY, -- SHA-256 of the token
	owner  TEXT NOT NULL,
	role   TEXT NOT NULL CHECK (role IN ('reader', 'author', 'editor'))
) WITHOUT ROWID`

// migrate updates the schema, and refuses a file with migrations of a newer version.
func migrate(db *gorm.DB) error {
	options := *gormigrate.DefaultOptions
	options.UseTransaction, options.ValidateUnknownMigrations = true, true
	return gormigrate.New(db, &options, migrations).Migrate()
}

func run(statement string) gormigrate.MigrateFunc {
	return func(tx *gorm.DB) error { return tx.Exec(statement).Error }
}

var samples = []struct{ title, body string }{
	{"House style", "- One thought to a paragraph.\n- Short words before long ones.\n- Say what to do, then why."},
	{"Welcome to the demo site", "Everything here is **plain Markdown**. Ask your AI client to list the articles, or to write one."},
}

// addSamples is a migration, so that deleted samples do not return at the next start.
func addSamples(tx *gorm.DB) error {
	now := time.Now().UTC().Truncate(time.Second)
	for _, sample := range samples {
		article, err := NewDraft(firstEditor, sample.title, sample.body, now)
		if err != nil {
			return err
		}
		if err := article.Publish(now); err != nil {
			return err
		}
		if err := insert(tx, article); err != nil {
			return err
		}
	}
	return nil
}

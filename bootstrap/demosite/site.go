// Package demosite is a small content management site on its own SQLite file: articles that are
// drafted, published and archived, API tokens with roles, and an MCP server for the articles. It is
// an example of a site that embeds Pasteport: its only connection to OAuth is the caller of a
// request. Site holds the database, and Site.MCPServer serves it.
package demosite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/go-gormigrate/gormigrate/v2"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite" // the driver "sqlite": pure Go
)

// Site is the content database with its operations. It is safe for concurrent use.
type Site struct {
	db    *gorm.DB
	clock func() time.Time
}

// Open opens the content database, or creates it with a few sample articles. Only the owner can
// read the file.
func Open(file string) (*Site, error) {
	conn, err := connect(file)
	if err != nil {
		return nil, fmt.Errorf("opening the content database %s, whose folder must exist and be writable: %w", file,
			err)
	}
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: conn}), &gorm.Config{
		SkipDefaultTransaction: true,
		Logger:                 logger.Discard, // GORM would print the values of failing statements
	})
	if err == nil {
		err = migrate(db)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("preparing the content database %s: %w", file, err), conn.Close())
	}
	return &Site{db: db, clock: time.Now}, nil
}

// Ping reads the newest article and rewrites user_version with its current value, which forces a
// write to the disk.
func (s *Site) Ping(ctx context.Context) error {
	var newest []Article
	if err := s.db.WithContext(ctx).Order("id DESC").Limit(1).Find(&newest).Error; err != nil {
		return fmt.Errorf("reading the content database: %w", err)
	}
	var version int
	err := s.db.WithContext(ctx).Raw("PRAGMA user_version").Scan(&version).Error
	if err == nil {
		err = s.db.WithContext(ctx).Exec(fmt.Sprintf("PRAGMA user_version = %d", version)).Error
	}
	if err != nil {
		return fmt.Errorf("writing to the content database: %w", err)
	}
	return nil
}

// Close closes the database; the site cannot be used afterwards.
func (s *Site) Close() error {
	conn, err := s.db.DB()
	if err != nil {
		return fmt.Errorf("closing the content database: %w", err)
	}
	return conn.Close()
}

// now returns the time in the precision of articles: UTC, whole seconds.
func (s *Site) now() time.Time { return s.clock().UTC().Truncate(time.Second) }

func connect(file string) (*sql.DB, error) {
	if err := createPrivate(file); err != nil {
		return nil, err
	}
	conn, err := sql.Open("sqlite", dataSource(file))
	if err != nil {
		return nil, err
	}
	conn.SetMaxOpenConns(1) // writers wait here instead of failing with SQLITE_BUSY
	if err := conn.Ping(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// createPrivate creates the file with mode 0600, because SQLite would create it with the umask's
// mode; WAL and index files inherit its mode.
func createPrivate(file string) error {
	handle, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(handle.Chmod(0o600), handle.Close())
}

func dataSource(file string) string {
	settings := url.Values{
		"_pragma":      {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"},
		"_txlock":      {"immediate"},
		"_time_format": {"sqlite"},
	}
	location := url.URL{
		Scheme:   "file",
		OmitHost: true,
		Path:     filepath.ToSlash(file),
		RawQuery: settings.Encode(),
	}
	return location.String()
}

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
	{"Welcome to the demo site",
		"Everything here is **plain Markdown**. Ask your AI client to list the articles, or to write one."},
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

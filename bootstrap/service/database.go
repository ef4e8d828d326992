package service

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pasteport/pasteport/adapters/persistence"
	_ "github.com/pasteport/pasteport/adapters/persistence/mysql" // the servers that the setting may name
	_ "github.com/pasteport/pasteport/adapters/persistence/postgres"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

// DatabaseConfig says where grants are kept: in a SQLite file of the data folder, or on a database server that replicas share.
type DatabaseConfig struct {
	URL         string // postgres://… or mysql://…, with the password; "" is the SQLite file
	SecretFile  string // holds the server secret, the same one for every replica; oauth.db.secret in the data folder
	Connections int    // at most, of this process
}

const defaultDatabaseConnections = persistence.DefaultConnections

// storeSettings are those that say where grants are kept.
var storeSettings = []string{"data", "database", "database-file", "server-secret"}

func (d *DatabaseConfig) settings() []*settings.Setting {
	return []*settings.Setting{
		settings.Secret("database", &d.URL, "database server that replicas share, as postgres://user:password@host/name or mysql://user:password@host/name").
			Checks("Database.URL").Otherwise("the SQLite file oauth.db in data").Like("postgres://pasteport:password@db.internal/pasteport"),
		settings.File("server-secret", &d.SecretFile, "file with the server secret, the same one for every replica on a database server").
			Checks("Database.SecretFile").Otherwise("oauth.db.secret in data").Like("/run/secrets/pasteport"),
		settings.Number("database-connections", &d.Connections, "connections to the database server at most, of each replica"),
	}
}

// check finds mistakes before anything is opened.
func (d DatabaseConfig) check() error {
	switch {
	case d.URL == "" && d.SecretFile != "":
		return oauth.NewMistake("%s is set without %s: the SQLite file has its secret beside it, leave it out", oauth.Field("Database.SecretFile"), oauth.Field("Database.URL"))
	case d.URL != "" && !persistence.IsServer(d.URL):
		return oauth.NewMistake("%s names no database server: write postgres://user:password@host/name or mysql://user:password@host/name, with %%2F for a slash of the password, %%23 for #, and so on", oauth.Field("Database.URL"))
	}
	return nil
}

func (d DatabaseConfig) options(dir string) persistence.ServerOptions {
	return persistence.ServerOptions{SecretFile: cmp.Or(d.SecretFile, filepath.Join(dir, "oauth.db.secret")), Connections: d.Connections}
}

// storePlace is where a store is: in a file, or on a database server.
type storePlace struct {
	file, url string // one of them is ""
	options   persistence.ServerOptions
}

// store is where this service keeps its grants.
func (c Config) store() storePlace {
	if c.Database.URL == "" {
		return c.fileStore()
	}
	return storePlace{url: c.Database.URL, options: c.Database.options(c.DataDir)}
}

func (c Config) fileStore() storePlace {
	return storePlace{file: filepath.Join(c.DataDir, "oauth.db")}
}

// open makes what is missing.
func (p storePlace) open() (*persistence.Store, error) {
	if p.url == "" {
		return persistence.OpenSQLite(p.file)
	}
	return persistence.OpenServer(p.url, p.options)
}

// openExisting opens the database beside the services that may be running on it.
func (p storePlace) openExisting() (*persistence.Store, error) {
	if p.url != "" {
		return persistence.OpenExistingServer(p.url, p.options)
	}
	if err := p.find(); err != nil {
		return nil, err
	}
	return persistence.OpenExisting(p.file)
}

// openUnchecked opens what may be wrong.
func (p storePlace) openUnchecked() (*persistence.Store, error) {
	if p.url != "" {
		return persistence.OpenUncheckedServer(p.url, p.options)
	}
	if err := p.find(); err != nil {
		return nil, err
	}
	return persistence.OpenUnchecked(p.file)
}

func (p storePlace) migrate() (applied []string, err error) {
	if p.url == "" {
		return persistence.MigrateSQLite(p.file)
	}
	return persistence.MigrateServer(p.url, p.options)
}

// makeForCopy makes the schema of what a copy goes to.
func (p storePlace) makeForCopy() (err error) {
	if p.url == "" {
		_, err = persistence.MakeSQLite(p.file)
	} else {
		_, err = persistence.MigrateServer(p.url, p.options)
	}
	return err
}

func (p storePlace) find() error {
	if _, err := os.Stat(p.file); err != nil {
		return fmt.Errorf("reading the service's data: %w: name its folder with --data, or its server with --database", err)
	}
	return nil
}

// String is the place without a password.
func (p storePlace) String() string {
	if p.url == "" {
		return p.file
	}
	return persistence.Redacted(p.url)
}

func (p storePlace) secretFile() string {
	if p.url == "" {
		return p.file + ".secret"
	}
	return p.options.SecretFile
}

// openStore opens the database, and makes what is missing.
func (c Config) openStore() (*persistence.Store, error) { return c.store().open() }

// openExistingStore opens the database beside the services that may be running on it.
func (c Config) openExistingStore() (*persistence.Store, error) {
	return c.store().openExisting()
}

// place is where people find what is kept, without a password.
func (c Config) place() string {
	if c.Database.URL == "" {
		return "data in " + c.DataDir
	}
	return "grants in " + c.store().String()
}

package service

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/pasteport/pasteport/adapters/persistence"
	_ "github.com/pasteport/pasteport/adapters/persistence/mysql" // drivers for the database setting
	_ "github.com/pasteport/pasteport/adapters/persistence/postgres"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

// DatabaseConfig locates the grants: in a SQLite file of the data folder, or on a database server
// that replicas share.
type DatabaseConfig struct {
	URL         string `set:"database" secret:"true" unset:"the SQLite file oauth.db in data" doc:"URL of a shared database server: postgres://user:password@host/name or mysql://user:password@host/name; for a cluster, with all hosts, separated by commas"`
	SecretFile  string `set:"server-secret" unset:"oauth.db.secret in data" path:"file" example:"/run/secrets/pasteport" doc:"file with the server secret; the same for every replica on a database server"`
	Connections int    `set:"database-connections" default:"16" min:"1" doc:"maximum number of connections to the database server per replica"`
}

// check validates the settings without opening the database.
func (d DatabaseConfig) check() error {
	switch {
	case d.URL == "" && d.SecretFile != "":
		return oauth.NewMistake("server-secret", "is set without database: the SQLite file has its secret beside it, "+
			"leave it out")
	case d.URL != "" && !persistence.IsServer(d.URL):
		return oauth.NewMistake("database", "is not the URL of a database server: write "+
			"postgres://user:password@host/name or mysql://user:password@host/name, where the password has %%2F "+
			"for a slash and %%23 for #")
	}
	return nil
}

func (d DatabaseConfig) options(dir string) persistence.ServerOptions {
	return persistence.ServerOptions{SecretFile: cmp.Or(d.SecretFile, filepath.Join(dir, "oauth.db.secret")),
		Connections: d.Connections}
}

// StoreLocation is a SQLite file or a database on a server.
type StoreLocation struct {
	file, url string // one of them is ""
	options   persistence.ServerOptions
}

// StoreLocation returns the configured location of the grants.
func (c Config) StoreLocation() StoreLocation {
	if c.Database.URL == "" {
		return c.FileLocation()
	}
	return StoreLocation{url: c.Database.URL, options: c.Database.options(c.DataDir)}
}

// FileLocation returns the SQLite file of the data folder, also when a database server is
// configured.
func (c Config) FileLocation() StoreLocation {
	return StoreLocation{file: filepath.Join(c.DataDir, "oauth.db")}
}

// LocationOf parses an address such as sqlite:///path, postgres://… or mysql://…; ok is false for
// any other address.
func (c Config) LocationOf(address string) (_ StoreLocation, ok bool) {
	if persistence.IsServer(address) {
		return StoreLocation{url: address, options: c.Database.options(c.DataDir)}, true
	}
	named, err := url.Parse(address)
	if err != nil || named.Scheme != "sqlite" || named.Host != "" || !filepath.IsAbs(named.Path) {
		return StoreLocation{}, false
	}
	return StoreLocation{file: named.Path}, true
}

// IsServer reports whether the location is on a database server.
func (l StoreLocation) IsServer() bool { return l.url != "" }

// Open opens the database, and creates the file and its schema if they are missing.
func (l StoreLocation) Open() (*persistence.Store, error) {
	if l.IsServer() {
		return persistence.OpenServer(l.url, l.options)
	}
	return persistence.OpenSQLite(l.file)
}

// UseExisting opens an existing database, calls use, and closes it; services may be running on it.
func (l StoreLocation) UseExisting(use func(*persistence.Store) error) error {
	store, err := l.OpenWith(persistence.OpenExisting)
	if err != nil {
		return err
	}
	return errors.Join(use(store), store.Close())
}

// OpenWith opens an existing database, on which services may be running. The argument is
// persistence.OpenExisting or persistence.OpenUnchecked.
func (l StoreLocation) OpenWith(
	open func(string, persistence.ServerOptions) (*persistence.Store, error)) (*persistence.Store, error) {
	if l.IsServer() {
		return open(l.url, l.options)
	}
	if _, err := os.Stat(l.file); err != nil {
		return nil, fmt.Errorf("reading the service's data: %w: name its folder with --data, or its server with "+
			"--database", err)
	}
	store, err := open(l.file, l.options)
	if err == nil {
		return store, nil
	}
	for _, path := range append(databaseFiles(l.file), filepath.Dir(l.file)) {
		if denied := checkAccess(path); denied != nil {
			return nil, fmt.Errorf("%w: %w, or run this command as its owner", err, denied)
		}
	}
	return nil, err
}

// Migrate updates the schema, creates a missing file, and returns the applied migrations.
func (l StoreLocation) Migrate() (applied []string, err error) {
	return persistence.Migrate(cmp.Or(l.url, l.file), l.options)
}

// String returns the location without a password.
func (l StoreLocation) String() string {
	if l.IsServer() {
		return persistence.Redacted(l.url)
	}
	return l.file
}

// SecretFile returns the file that holds the server secret.
func (l StoreLocation) SecretFile() string {
	if l.IsServer() {
		return l.options.SecretFile
	}
	return l.file + ".secret"
}

// MakeDataDir creates the data folder if it is missing. Other users cannot read it, because it
// holds the server secret. It refuses a folder with a database that this user cannot write.
func MakeDataDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the data folder (--data): %w", err)
	}
	for _, path := range append([]string{dir}, databaseFiles(filepath.Join(dir, "*.db"))...) {
		if err := checkAccess(path); err != nil {
			return fmt.Errorf("opening the data folder: %w, or choose another folder with --data", err)
		}
	}
	return nil
}

// databaseFiles returns the existing files of the SQLite databases that match the pattern.
func databaseFiles(pattern string) (files []string) {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		found, _ := filepath.Glob(pattern + suffix) // fails for a malformed pattern only, which finds nothing
		files = append(files, found...)
	}
	return files
}

// checkAccess returns an error with the owner if this user may not write a file or folder. It
// ignores a missing file, because a service that ends meanwhile removes the log of its database.
func checkAccess(path string) error {
	if err := writable(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s cannot be written: %w%s: give it to this user with chown", path, err,
			settings.OwnerOf(path))
	}
	return nil
}

// lockFolder locks the data folder for services of one issuer, because the tokens of one issuer are
// worth nothing at another. The first service notes its issuer in the folder while it has the lock
// alone. Then it shares the lock with services that start beside it, which compare their issuer.
func lockFolder(dir, issuer string) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(dir, "issuer.lock"), flock.SetPermissions(0o600))
	note := filepath.Join(dir, "issuer")
	alone, err := lock.TryLock()
	if alone {
		err = errors.Join(os.WriteFile(note, []byte(issuer), 0o600), lock.Unlock())
	}
	if err == nil {
		err = lock.RLock()
	}
	if err != nil {
		return nil, fmt.Errorf("locking the data folder: %w", err)
	}
	noted, err := os.ReadFile(note)
	if err == nil && string(noted) != issuer {
		err = fmt.Errorf("a service with the issuer %s runs on the data folder %s: stop it, or "+
			"name another folder with --data", noted, dir)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

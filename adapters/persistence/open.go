package persistence

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/pasteport/pasteport/adapters/persistence/internal/drivers"
	"github.com/pasteport/pasteport/adapters/persistence/secretfile"
	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
)

// ServerOptions configure a store on a database server. Comments name the defaults of zero values.
type ServerOptions struct {
	// File of the server secret, the same for every replica; required. OpenServer creates it for an
	// unused database.
	SecretFile  string
	Connections int // maximum for this process; 16
}

const (
	DefaultConnections = 16
	connectionIdle     = 5 * time.Minute
	connectionLife     = 30 * time.Minute // so that connections reach the new addresses after a failover
	secretSuffix       = ".secret"        // of the file of the server secret beside a SQLite file
)

// OpenSQLite opens the database in file and brings its schema up to date. It creates a missing
// file, and a missing directory, for their owner only; beside the file lies the server secret.
// Several processes may share one file.
func OpenSQLite(file string) (*Store, error) {
	store, err := openFile(file, true)
	return ready(store, err, (*Store).prepare)
}

// OpenServer opens the database of a URL with the scheme postgres, postgresql, mysql or mariadb,
// and brings its schema up to date. Any number of replicas may share the database and start at
// once. The program has to import package postgres or mysql, which register the drivers.
func OpenServer(address string, options ServerOptions) (*Store, error) {
	if options.SecretFile == "" {
		return nil, errors.New("opening the OAuth database: ServerOptions.SecretFile is empty: name the file of the " +
			"server secret, which is the same for every replica and need not exist for an unused database")
	}
	store, err := openServer(address, options)
	return ready(store, err, (*Store).prepare)
}

// OpenExisting opens the database in a file, or at the URL of a server, beside the service that
// runs on it. It creates and migrates nothing, and fails when that would be necessary, because an
// older service could not go on with the result.
func OpenExisting(address string, options ServerOptions) (*Store, error) {
	store, err := open(address, options, false)
	return ready(store, err, func(s *Store) error { return cmp.Or(s.compareSchema(), s.durable()) })
}

// OpenUnchecked is OpenExisting without any examination, for Checks.
func OpenUnchecked(address string, options ServerOptions) (*Store, error) {
	return open(address, options, false)
}

// Migrate brings the schema of a database up to date beside the replicas that run on it, and
// returns the migrations that it applied. It creates a missing file, and no server secret.
func Migrate(address string, options ServerOptions) (applied []string, err error) {
	store, err := open(address, options, true)
	store, err = ready(store, err, func(s *Store) (err error) {
		applied, err = s.migrate()
		return err
	})
	if err != nil {
		return nil, err
	}
	return applied, store.Close()
}

func open(address string, options ServerOptions, creates bool) (*Store, error) {
	if strings.Contains(address, "://") {
		return openServer(address, options)
	}
	return openFile(address, creates)
}

// ready returns a store that was opened without err, if examine accepts it.
func ready(store *Store, err error, examine func(*Store) error) (*Store, error) {
	if err != nil {
		return nil, err
	}
	if err := examine(store); err != nil {
		return nil, errors.Join(refusal(store.name, err), store.Close())
	}
	return store, nil
}

func refusal(name string, err error) error {
	return fmt.Errorf("opening the OAuth database %s: %w", name, sqlite.Explain(err))
}

// openFile creates a missing file, and gives it a write-ahead log, only if creates is set.
func openFile(file string, creates bool) (*Store, error) {
	var pragmas []string
	path, err := filepath.Abs(file) // so that no name has a special meaning to SQLite
	if creates && err == nil {
		pragmas, err = []string{sqlite.WAL}, create(path)
	}
	if err != nil {
		return nil, refusal(file, err)
	}
	database, err := sqlite.Open(path, pragmas...)
	if err != nil {
		return nil, refusal(file, err)
	}
	return &Store{
		name:        file,
		engine:      sqliteEngine,
		file:        database,
		writer:      database.Writer,
		reader:      database.Reader,
		close:       database.Close,
		secretFile:  path + secretSuffix,
		lockTimeout: sqlite.BusyTimeout,
	}, nil
}

// create creates a missing file. It does not even open a file that exists: closing it would release
// the locks that this process may hold on it.
func create(path string) error {
	if found, err := os.Stat(path); err == nil && found.IsDir() {
		return errors.New("it is a directory: name a file in it")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	made, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return secretfile.Protect(path, false)
	}
	if err != nil {
		return err
	}
	return made.Close()
}

// errAddress does not contain the address, which holds a password.
var errAddress = errors.New("opening the OAuth database: " +
	"the address is not that of a database: write postgres://user:password@host/name or " +
	"mysql://user:password@host/name, where the password has %2F for a slash and %23 for #")

// servers are the engines by the scheme of their addresses.
var servers = map[string]engine{
	"postgres":   postgresEngine,
	"postgresql": postgresEngine,
	"mysql":      mysqlEngine,
	"mariadb":    mysqlEngine,
}

// openServer connects once, to report a wrong address.
func openServer(address string, options ServerOptions) (*Store, error) {
	if !IsServer(address) {
		return nil, errAddress
	}
	named, _ := url.Parse(address)
	kind := servers[named.Scheme]
	driver, linked := drivers.ByScheme[named.Scheme]
	if !linked {
		return nil, refusal(Redacted(address),
			fmt.Errorf("this program has no driver for %s: import _ %q", kind.name, kind.driver))
	}
	pool, dialector, err := driver.Open(named)
	if err != nil { // which contains the address
		return nil, errAddress
	}
	size := cmp.Or(options.Connections, DefaultConnections)
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	pool.SetConnMaxIdleTime(connectionIdle)
	pool.SetConnMaxLifetime(connectionLife)
	db, err := gorm.Open(dialector, &gorm.Config{SkipDefaultTransaction: true, Logger: logger.Discard})
	if err != nil {
		return nil, errors.Join(refusal(Redacted(address), fmt.Errorf("the server does not let us in: check its "+
			"address, the database, the user and the password: %w", err)), pool.Close())
	}
	return &Store{
		name:        Redacted(address),
		engine:      kind,
		writer:      db,
		reader:      db,
		close:       pool.Close,
		secretFile:  options.SecretFile,
		lockTimeout: sqlite.BusyTimeout, // the same for every engine
	}, nil
}

// IsServer reports whether OpenServer can open an address. It refuses an unescaped "/" or "#" in
// the password, because url.Parse takes that for the start of a path or fragment, which is logged.
func IsServer(address string) bool {
	named, err := url.Parse(address)
	return err == nil && servers[named.Scheme].name != "" &&
		(named.Host != "" || named.Query().Has("host")) && // the folder of a socket is in the query
		named.Fragment == "" && !strings.Contains(named.EscapedPath(), "@")
}

// Redacted returns an address without its user, password and options, which may hold a password.
func Redacted(address string) string {
	if !IsServer(address) {
		return "[hidden]"
	}
	named, _ := url.Parse(address)
	return named.Scheme + "://" + named.Host + named.EscapedPath()
}

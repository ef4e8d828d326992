package persistence

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/pasteport/pasteport/adapters/internal/outbound"
	"github.com/pasteport/pasteport/adapters/persistence/internal/drivers"
	"github.com/pasteport/pasteport/adapters/persistence/secretfile"
	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
)

// ServerOptions configure a store on a database server. A zero value means the default in its
// comment.
type ServerOptions struct {
	// File of the server secret, the same for every replica; required. OpenServer creates it for an
	// unused database.
	SecretFile  string
	Connections int // the most of this process; 16
}

const (
	DefaultConnections = 16
	connectionIdle     = 5 * time.Minute
	connectionLife     = 30 * time.Minute // so that connections reach the new addresses after a failover
	migrationLimit     = 5 * time.Minute  // for the lock and the migrations: a large table takes its time
	attempts           = 16               // of a change that collides with others
)

// OpenServer opens the database of a URL with the scheme postgres, postgresql, mysql or mariadb,
// and brings its schema up to date. Any number of replicas may share the database and start at
// once. The program has to import package postgres or mysql, which register the drivers.
func OpenServer(address string, options ServerOptions) (*Store, error) {
	if options.SecretFile == "" {
		return nil, errNoSecretFile
	}
	return openServer(address, options, (*Store).prepareServer)
}

// OpenExistingServer is OpenServer that creates and migrates nothing.
func OpenExistingServer(address string, options ServerOptions) (*Store, error) {
	return openServer(address, options, (*Store).compare)
}

func openServer(address string, options ServerOptions, ready func(*Store) error) (*Store, error) {
	store, err := connectToServer(address, options)
	if err != nil {
		return nil, fmt.Errorf("opening the OAuth database: %w", err)
	}
	err = store.reach()
	if err == nil {
		err = ready(store)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the OAuth database %s: %w", Redacted(address), err),
			disconnect(store.writer))
	}
	return store, nil
}

var errNoSecretFile = errors.New("opening the OAuth database: ServerOptions.SecretFile is empty: name the file of " +
	"the server secret, which is the same for every replica and need not exist for an unused database")

// errAddress does not contain the address, which holds a password.
var errAddress = errors.New(
	"the address is not that of a database: write postgres://user:password@host/name or " +
		"mysql://user:password@host/name, with %2F for a slash in the password, %23 for #, and so on")

func connectToServer(address string, options ServerOptions) (*Store, error) {
	if !IsServer(address) {
		return nil, errAddress
	}
	named, _ := url.Parse(address)
	kind := servers[named.Scheme]
	driver, linked := drivers.Of(named.Scheme)
	if !linked {
		return nil, fmt.Errorf("this program has no driver for %s: import _ %q", kind.name, kind.driver)
	}
	pool, dialector, err := driver.Open(named)
	if err != nil { // which contains the address
		return nil, errAddress
	}
	size := options.Connections
	if size == 0 {
		size = DefaultConnections
	}
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	pool.SetConnMaxIdleTime(connectionIdle)
	pool.SetConnMaxLifetime(connectionLife)
	db, err := gorm.Open(dialector,
		&gorm.Config{SkipDefaultTransaction: true, Logger: logger.Discard, DisableAutomaticPing: true})
	if err != nil {
		return nil, errors.Join(connectionError(err), pool.Close())
	}
	return &Store{
		engine:      kind,
		writer:      db,
		reader:      db,
		secretFile:  secretfile.New(options.SecretFile),
		lockTimeout: sqlite.BusyTimeout,
	}, nil
}

// servers are the engines by the scheme of their addresses.
var servers = map[string]engine{
	"postgres":   postgresEngine,
	"postgresql": postgresEngine,
	"mysql":      mysqlEngine,
	"mariadb":    mysqlEngine,
}

// reach connects once.
func (s *Store) reach() error {
	pool, err := s.writer.DB()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.lockTimeout)
	defer cancel()
	if err := pool.PingContext(ctx); err != nil {
		return connectionError(err)
	}
	return nil
}

func connectionError(err error) error {
	return fmt.Errorf("the server does not let us in: check its address, the database, the user and the password: %w",
		err)
}

func disconnect(db *gorm.DB) error {
	pool, err := db.DB()
	if err != nil {
		return err
	}
	return pool.Close()
}

// MigrateServer brings the schema of a database up to date beside the replicas that run on it, and
// returns the migrations that it applied. It needs no server secret.
func MigrateServer(address string, options ServerOptions) (applied []string, err error) {
	store, err := openServer(address, options, func(s *Store) (err error) {
		applied, err = s.migrateServer(func(*gorm.DB) error { return nil })
		return err
	})
	if err != nil {
		return nil, err
	}
	return applied, store.Close()
}

// OpenUncheckedServer opens a database on a server without examining it, for Checks.
func OpenUncheckedServer(address string, options ServerOptions) (*Store, error) {
	return openServer(address, options, unchecked)
}

// IsServer reports whether OpenServer can open an address.
func IsServer(address string) bool {
	named, valid := outbound.ParseServer(address)
	return valid && servers[named.Scheme].name != "" &&
		(named.Host != "" || named.Query().Has("host")) // the folder of a socket is in the query
}

// Redacted returns an address without its user, password and options; options may hold a password
// too.
func Redacted(address string) string {
	named, err := url.Parse(address)
	if err != nil || !IsServer(address) {
		return "[hidden]"
	}
	return named.Scheme + "://" + named.Host + named.EscapedPath()
}

func (s *Store) prepareServer() error {
	_, err := s.migrateServer(s.createSecret)
	return err
}

// migrateServer migrates and then runs also, both under a lock, so that replicas that start
// together do it once.
func (s *Store) migrateServer(also func(tx *gorm.DB) error) (applied []string, err error) {
	if err := s.engine.durable(s.writer); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), migrationLimit)
	defer cancel()
	err = s.retryCollisions(ctx, func() error {
		return s.attempt(ctx, cancel, func(tx *gorm.DB) (err error) {
			if err := s.engine.lock(tx); err != nil {
				return failed("waiting for other replicas to migrate the schema", err)
			}
			if applied, err = migrate(tx, s.engine, migrations); err == nil {
				err = also(tx)
			}
			return errors.Join(err, s.engine.unlock(tx))
		})
	})
	return applied, err
}

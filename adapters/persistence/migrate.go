package persistence

import "gorm.io/gorm"

// MigrateSQLite brings the schema of the database in file up to date, makes the file when it is missing, and returns the migrations that
// it applied. Like OpenSQLite it refuses a file that was lost.
func MigrateSQLite(file string) (applied []string, err error) {
	return migrateSQLite(file, createUnlessLost, (*Store).refuseBegun)
}

// MakeSQLite is MigrateSQLite for the destination of a copy, whose secret may be there before the database.
func MakeSQLite(file string) (applied []string, err error) {
	return migrateSQLite(file, create, func(*Store, []string) error { return nil })
}

func migrateSQLite(file string, locate func(path string) error, also func(s *Store, applied []string) error) (applied []string, err error) {
	store, err := open(file, locate, dsn, func(s *Store) (err error) {
		applied, err = s.migrateFile(func(applied []string) error { return also(s, applied) })
		return err
	})
	if err != nil {
		return nil, err
	}
	return applied, store.Close()
}

// MigrateServer brings the schema of a database up to date beside the replicas that run on it, and returns the migrations that it
// applied. It needs no server secret.
func MigrateServer(address string, options ServerOptions) (applied []string, err error) {
	store, err := openServer(address, options, func(s *Store) (err error) {
		applied, err = s.migrateServer(nothingElse)
		return err
	})
	if err != nil {
		return nil, err
	}
	return applied, store.Close()
}

func nothingElse(*gorm.DB) error { return nil }

// OpenUnchecked opens the database in a file that exists, whatever is wrong with it, so that Check can tell.
func OpenUnchecked(file string) (*Store, error) { return open(file, exists, asItIs, unchecked) }

// OpenUncheckedServer opens a database on a server, whatever is wrong with it, so that Check can tell.
func OpenUncheckedServer(address string, options ServerOptions) (*Store, error) {
	return openServer(address, options, unchecked)
}

func unchecked(*Store) error { return nil }

package engines

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os/user"
	"path"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/go-sql-driver/mysql"
)

// MariaDB starts a new MariaDB server with the durability settings of a production server.
func MariaDB(ctx context.Context, settings ...string) (*Server, error) {
	program, err := find("mariadbd", "/usr/sbin/mariadbd")
	if err != nil {
		return nil, err
	}
	install, err := find("mariadb-install-db")
	if err != nil {
		return nil, err
	}
	s, err := newServer("mysql")
	if err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	as, data := "mysql", filepath.Join(s.folder, "data")
	// Every server empties its temporary folder of tables as it starts, also of those in use.
	temporary := "--tmpdir=" + s.folder
	if s.owner == nil {
		known, err := user.Current()
		if err != nil {
			return nil, err
		}
		as = known.Username
	}
	if err := s.run(install, "--no-defaults", "--datadir="+data, temporary, "--user="+as,
		"--auth-root-authentication-method=normal", "--skip-test-db"); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.program = program
	s.flags = []string{
		"--no-defaults", "--datadir=" + data, temporary, "--user=" + as, "--bind-address=127.0.0.1",
		"--port=" + strconv.Itoa(port),
		"--socket=" + filepath.Join(s.folder, "socket"), "--pid-file=" + filepath.Join(s.folder, "pid"),
		"--skip-log-bin",
		"--innodb-log-file-size=16M",
	}
	for _, setting := range settings {
		s.flags = append(s.flags, "--"+setting)
	}
	s.Endpoint, s.quick = mariaDBAt(port), syscall.SIGTERM
	if err := s.Start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// mariaDBAt returns the endpoint of a running server.
func mariaDBAt(port int) *Endpoint {
	return &Endpoint{
		port: port,
		url:  fmt.Sprintf("mysql://root@127.0.0.1:%d/%%s", port),
		exec: execMariaDB,
		hold: holdMariaDB(port),
	}
}

func execMariaDB(ctx context.Context, at *Endpoint, statement string) error {
	pool, err := openPool(at.port, "")
	if err != nil {
		return err
	}
	_, err = pool.ExecContext(ctx, statement)
	return errors.Join(err, pool.Close())
}

func holdMariaDB(port int) func(context.Context, string, []string) (func() error, error) {
	return func(ctx context.Context, url string, statements []string) (func() error, error) {
		pool, err := openPool(port, path.Base(url))
		if err != nil {
			return nil, err
		}
		pool.SetMaxOpenConns(1)
		for _, statement := range append([]string{"BEGIN"}, statements...) {
			if _, err := pool.ExecContext(ctx, statement); err != nil {
				return nil, errors.Join(err, pool.Close())
			}
		}
		return pool.Close, nil
	}
}

func openPool(port int, database string) (*sql.DB, error) {
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.DBName = "root", "tcp", fmt.Sprintf("127.0.0.1:%d", port), database
	config.Logger = new(mysql.NopLogger)
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

package engines

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Postgres starts a new PostgreSQL server with the durability settings of a production server.
func Postgres(ctx context.Context, settings ...string) (*Server, error) {
	s, err := newPostgres(settings)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(s.folder, "data")
	if err := s.run(s.tool("initdb"), "--pgdata="+data, "--username=pasteport", "--auth=trust", "--no-sync",
		"--encoding=UTF8", "--locale=C"); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.Start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// newPostgres returns a server without data.
func newPostgres(settings []string) (*Server, error) {
	program, err := find("/usr/lib/postgresql/*/bin/postgres", "postgres")
	if err != nil {
		return nil, err
	}
	s, err := newServer("postgres")
	if err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	s.program = program
	s.flags = []string{"-D", filepath.Join(s.folder, "data"), "-h", "127.0.0.1", "-p",
		strconv.Itoa(port), "-k", s.folder,
		"-c", "dynamic_shared_memory_type=mmap", // in files of the folder, which are removed with it
		"-c", "max_wal_size=128MB", "-c", "min_wal_size=32MB"}
	for _, setting := range settings {
		s.flags = append(s.flags, "-c", setting)
	}
	s.Endpoint, s.quick = postgresAt(port), syscall.SIGINT
	return s, nil
}

// tool returns the path of a program of the same version.
func (s *Server) tool(name string) string { return filepath.Join(filepath.Dir(s.program), name) }

// Pair is a PostgreSQL server and its synchronous standby: a commit is answered when both have it.
type Pair struct{ Primary, Standby *Server }

// NewPair starts both servers.
func NewPair(ctx context.Context) (*Pair, error) {
	primary, err := Postgres(ctx)
	if err != nil {
		return nil, err
	}
	standby, err := newPostgres(nil)
	if err != nil {
		return nil, errors.Join(err, primary.Close())
	}
	pair := &Pair{primary, standby}
	if err := pair.replicate(ctx); err != nil {
		return nil, errors.Join(err, pair.Close())
	}
	return pair, nil
}

func (p *Pair) replicate(ctx context.Context) error {
	if err := p.Standby.run(p.Standby.tool("pg_basebackup"), "--pgdata="+filepath.Join(p.Standby.folder, "data"),
		"--host=127.0.0.1",
		"--port="+strconv.Itoa(p.Primary.port), "--username=pasteport", "--write-recovery-conf", "--checkpoint=fast",
		"--no-sync"); err != nil {
		return err
	}
	if err := p.Standby.Start(ctx); err != nil {
		return err
	}
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
		if err := p.Primary.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// Database creates an empty database and returns its URL, which names both servers.
func (p *Pair) Database(ctx context.Context) (string, error) {
	url, err := p.Primary.Database(ctx)
	if err != nil {
		return "", err
	}
	host := "127.0.0.1:" + strconv.Itoa(p.Primary.port)
	return strings.Replace(url, host, host+",127.0.0.1:"+strconv.Itoa(p.Standby.port), 1), nil
}

// Promote makes the standby accept writes. It keeps no standby of its own.
func (p *Pair) Promote() error {
	return p.Standby.run(p.Standby.tool("pg_ctl"), "promote", "--wait",
		"--pgdata="+filepath.Join(p.Standby.folder, "data"))
}

// Close kills both servers and removes their folders.
func (p *Pair) Close() error { return errors.Join(p.Primary.Close(), p.Standby.Close()) }

// postgresAt returns the endpoint of a running server.
func postgresAt(port int) *Endpoint {
	url := fmt.Sprintf("postgres://pasteport@127.0.0.1:%d/%%s?sslmode=disable", port)
	return &Endpoint{
		port:  port,
		url:   url,
		exec:  execPostgres,
		hold:  holdPostgres,
		force: " WITH (FORCE)",
	}
}

func execPostgres(ctx context.Context, at *Endpoint, statement string) error {
	connection, err := pgx.Connect(ctx, fmt.Sprintf(at.url, "postgres"))
	if err != nil {
		return err
	}
	_, err = connection.Exec(ctx, statement)
	return errors.Join(err, connection.Close(ctx))
}

func holdPostgres(ctx context.Context, url string, statements []string) (func() error, error) {
	connection, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	release := func() error { return connection.Close(context.Background()) }
	for _, statement := range append([]string{"BEGIN"}, statements...) {
		if _, err := connection.Exec(ctx, statement); err != nil {
			return nil, errors.Join(err, release())
		}
	}
	return release, nil
}

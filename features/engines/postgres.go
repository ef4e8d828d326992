package engines

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Postgres starts a new PostgreSQL server with the durability settings of a production server.
func Postgres(ctx context.Context, settings ...string) (*Server, error) {
	initdb, err := find("/usr/lib/postgresql/*/bin/initdb", "initdb")
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
	data := filepath.Join(s.folder, "data")
	if err := s.run(initdb, "--pgdata="+data, "--username=pasteport", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.program = filepath.Join(filepath.Dir(initdb), "postgres")
	s.flags = []string{"-D", data, "-h", "127.0.0.1", "-p", strconv.Itoa(port), "-k", s.folder,
		"-c", "dynamic_shared_memory_type=mmap", // in files of the folder, which are removed with it
		"-c", "max_wal_size=128MB", "-c", "min_wal_size=32MB"}
	for _, setting := range settings {
		s.flags = append(s.flags, "-c", setting)
	}
	s.Endpoint, s.quick = postgresAt(port), syscall.SIGINT
	if err := s.Start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// postgresAt returns the endpoint of a running server.
func postgresAt(port int) *Endpoint {
	url := fmt.Sprintf("postgres://pasteport@127.0.0.1:%d/%%s?sslmode=disable", port)
	return &Endpoint{port: port, url: url, exec: execPostgres, hold: holdPostgres, force: " WITH (FORCE)"}
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

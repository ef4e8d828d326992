package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/pasteport/pasteport/features/engines"
)

// store is a database engine, with the number of replicas that run on it.
type store struct {
	name     string
	title    string
	replicas int
	engine   *engines.Server // nil for SQLite
	bus      *server.Server
}

func openStore(ctx context.Context, name string) (*store, error) {
	if name == "sqlite" {
		return &store{name: name, title: "SQLite, one process", replicas: 1}, nil
	}
	engine, err := engines.Postgres(ctx)
	if err != nil {
		return nil, fmt.Errorf("starting PostgreSQL: %w", err)
	}
	bus, err := startBus()
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return &store{
		name:     name,
		title:    "PostgreSQL, two replicas",
		replicas: 2,
		engine:   engine,
		bus:      bus,
	}, nil
}

// startBus runs the NATS server over which replicas reach each other's sessions.
func startBus() (*server.Server, error) {
	bus, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true})
	if err != nil {
		return nil, fmt.Errorf("making a NATS server: %w", err)
	}
	bus.Start()
	if !bus.ReadyForConnections(10 * time.Second) {
		return nil, errors.New("the NATS server does not start")
	}
	return bus, nil
}

// database returns the URL of an empty database and how to remove it; SQLite needs none.
func (s *store) database(ctx context.Context) (url string, drop func() error, err error) {
	if s.engine == nil {
		return "", func() error { return nil }, nil
	}
	url, err = s.engine.Database(ctx)
	return url, func() error { return s.engine.Drop(context.WithoutCancel(ctx), url) }, err
}

func (s *store) close() error {
	if s.engine == nil {
		return nil
	}
	s.bus.Shutdown()
	return s.engine.Close()
}

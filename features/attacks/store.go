package main

import (
	"context"
	"fmt"

	"github.com/pasteport/pasteport/features/engines"
)

// store is a database engine, with the number of replicas that run on it.
type store struct {
	name     string
	title    string
	replicas int
	engine   *engines.Server // nil for SQLite
}

func openStore(ctx context.Context, name string) (*store, error) {
	if name == "sqlite" {
		return &store{name: name, title: "SQLite, one process", replicas: 1}, nil
	}
	engine, err := engines.Postgres(ctx)
	if err != nil {
		return nil, fmt.Errorf("starting PostgreSQL: %w", err)
	}
	return &store{
		name:     name,
		title:    "PostgreSQL, two replicas",
		replicas: 2,
		engine:   engine,
	}, nil
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
	return s.engine.Close()
}

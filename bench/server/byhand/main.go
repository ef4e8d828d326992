// Command byhand is the minimal code flow on SQLite. It writes the same rows as Pasteport's store,
// in shared transactions.
package main

import (
	"path/filepath"

	"github.com/pasteport/pasteport/bench/server"
	"github.com/pasteport/pasteport/bench/server/minimal"
	"github.com/pasteport/pasteport/bench/server/raw"
)

func main() { server.Main(map[string]server.Open{"echo-flow": open}) }

func open(order server.Order, _ string) (server.Site, error) {
	db, err := raw.Open(filepath.Join(order.Dir, "oauth.db"))
	if err != nil {
		return server.Site{}, err
	}
	return minimal.New(newWriter(db)), nil
}

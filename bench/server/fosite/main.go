// Command fosite is a site on ory/fosite, with a store in memory or in SQLite.
package main

import (
	_ "modernc.org/sqlite" // Pasteport's driver

	"github.com/pasteport/pasteport/bench/server"
	"github.com/pasteport/pasteport/bench/server/fositesite"
)

func main() { server.Main(fositesite.Servers) }

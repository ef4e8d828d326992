// Command replica is a site with Pasteport on PostgreSQL or MariaDB.
package main

import (
	_ "github.com/pasteport/pasteport/adapters/persistence/mysql"
	_ "github.com/pasteport/pasteport/adapters/persistence/postgres"
	"github.com/pasteport/pasteport/bench/server"
	"github.com/pasteport/pasteport/bench/server/guarded"
)

func main() { server.Main(guarded.Servers) }

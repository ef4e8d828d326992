// Command fositepg is a site on ory/fosite, with a store on PostgreSQL.
package main

import (
	_ "github.com/jackc/pgx/v5/stdlib" // Pasteport's driver

	"github.com/pasteport/pasteport/bench/server"
	"github.com/pasteport/pasteport/bench/server/fositesite"
)

func main() { server.Main(fositesite.Servers) }

// Command pasteport is a site with Pasteport on SQLite.
package main

import (
	"github.com/pasteport/pasteport/bench/server"
	"github.com/pasteport/pasteport/bench/server/guarded"
)

func main() { server.Main(guarded.Servers) }

// Command pasteport is a site whose grants are in a file.
package main

import (
	"github.com/pasteport/pasteport/bench/server"
	"github.com/pasteport/pasteport/bench/server/guarded"
)

func main() { server.Main(guarded.Servers) }

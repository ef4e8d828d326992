// Command pasteport runs Pasteport: as a demonstration, as the demo site, as a gateway, or as an
// authorization server alone. It also has the operator's tools.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/pasteport/pasteport/bootstrap/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

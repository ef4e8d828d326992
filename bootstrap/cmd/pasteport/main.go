// Command pasteport runs Pasteport's demo site: as a demonstration, as a service, or for a local client.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/pasteport/pasteport/bootstrap/service"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := service.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Command conformance runs the official MCP conformance suite in its authorization-server mode
// against a built pasteport binary, once for each spec version that the suite knows, and fails
// unless every check of every scenario succeeds.
//
//	npm ci --ignore-scripts --prefix features/conformance
//	CGO_ENABLED=0 go build -o dist/pasteport ./bootstrap/cmd/pasteport
//	go run ./features/conformance -pasteport dist/pasteport
//
// Everything runs on loopback: the binary, a client's site that serves its metadata document over
// TLS, the suite as the client, and a simulated browser that pastes the token and approves.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// runLimit is the time limit of the whole run; the suite alone waits five minutes for a missing
// callback.
const runLimit = 4 * time.Minute

func main() {
	binary := flag.String("pasteport", "dist/pasteport", "the built `binary` to test")
	folder := flag.String("suite", "features/conformance", "the `folder` whose node_modules holds the suite")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	err := run(ctx, *binary, *folder)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary, folder string) (err error) {
	dir, err := os.MkdirTemp("", "pasteport-conformance-")
	if err != nil {
		return fmt.Errorf("making a folder for the run: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	suite, err := openSuite(folder, dir)
	if err != nil {
		return err
	}
	client, err := openClientSite(suite.callback(), dir)
	if err != nil {
		return err
	}
	defer client.Close()
	server, err := startServer(ctx, binary, client.authority, dir)
	if err != nil {
		return err
	}
	outcomes, err := suite.runAll(ctx, server, client.id())
	if err := errors.Join(err, server.stop()); err != nil {
		return fmt.Errorf("%w\n%s", err, server.log.String())
	}
	return report(os.Stdout, outcomes)
}

// Command attacks runs the built binary under attack and measures how many honest people get in.
// Each row of its table is an attack on a new server. Start reading at rows, the table of attacks,
// and at Person, an honest person. Run it from the module's root:
//
//	go run ./features/attacks                            all rows, 15 s each
//	go run ./features/attacks -row one                   the rows whose name begins with "one"
//	go run ./features/attacks -write docs/limits.md      puts the table into this page
//
// It fails when too few honest people get in, and when more than one guess a second of a network
// reaches the site.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	pasteport string
	row       string
	write     string
	seconds   int
	success   int
}

func main() {
	var o options
	flag.StringVar(&o.pasteport, "pasteport", "", "the built `binary`; without one, it is built first")
	flag.StringVar(&o.row, "row", "", "run only the rows whose name begins with `name`")
	flag.StringVar(&o.write, "write", "", "put the table into the marked block of this `file`")
	flag.IntVar(&o.seconds, "seconds", 15, "duration of each attack in seconds")
	flag.IntVar(&o.success, "min-success", 95, "minimum percentage of honest people who get in, in every row")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "attacks:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "pasteport-attacks-")
	if err != nil {
		return fmt.Errorf("making a folder for the run: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.pasteport == "" {
		if o.pasteport, err = build(ctx, dir); err != nil {
			return err
		}
	}
	var results []result
	var failures error
	for _, r := range rows() {
		if !strings.HasPrefix(r.name, o.row) {
			continue
		}
		began := time.Now()
		found, err := runRow(ctx, r, o, dir)
		if err != nil {
			return errors.Join(failures, fmt.Errorf("%s: %w", r.name, err))
		}
		fmt.Fprintf(os.Stderr, "%s took %.0f s: %s\n", r.name, time.Since(began).Seconds(), found.summary())
		results = append(results, found)
		failures = errors.Join(failures, found.check(o.success))
	}
	if len(results) == 0 {
		return fmt.Errorf("no row has a name that begins with %q", o.row)
	}
	text := table(results)
	fmt.Printf("\nattacks, %d s each\n\n%s\n", o.seconds, text)
	if o.write == "" {
		return failures
	}
	return errors.Join(failures, writeBlock(o.write, text))
}

func build(ctx context.Context, dir string) (binary string, err error) {
	binary = filepath.Join(dir, "pasteport")
	command := exec.CommandContext(ctx, "go", "build", "-o", binary, "./bootstrap/cmd/pasteport")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building pasteport: %w\n%s", err, output)
	}
	return binary, nil
}

// Command attacks runs the built binary under attack and measures how many honest people connect,
// and how long it takes. Each row of its table is an attack on a new server, on SQLite and on
// PostgreSQL with two replicas. Start reading at rows, the table of attacks, and at Person, an
// honest person. Run it from the module's root:
//
//	go run ./features/attacks                             all rows on both stores, 30 s each
//	go run ./features/attacks -store sqlite -row office   one row
//	go run ./features/attacks -table guesses              how many guesses reach the site
//
// It fails when too few honest people connect, and when too many guesses reach the site.
package main

import (
	"cmp"
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
	pasteport  string
	row        string
	store      string
	table      string
	write      string
	seconds    int
	maxGuesses int
	minSuccess int
	minWithout int
}

func main() {
	var o options
	flag.StringVar(&o.pasteport, "pasteport", "", "the built `binary`; without one, it is built first")
	flag.StringVar(&o.row, "row", "", "run only the rows whose name starts with `name`")
	flag.StringVar(&o.store, "store", "", "sqlite or postgres; default: both")
	flag.StringVar(&o.table, "table", "attacks", "the `table` to measure: attacks or guesses")
	flag.StringVar(&o.write, "write", "", "put the tables into the marked blocks of this `file`")
	flag.IntVar(&o.seconds, "seconds", 30, "duration of each attack in seconds")
	flag.IntVar(&o.maxGuesses, "max-guesses", 0,
		"maximum of checked guesses per hour in any row; 0 means 50,000 for attacks and 2,000,000 for guesses")
	flag.IntVar(&o.minSuccess, "min-success", 95, "minimum percentage of honest people who connect, in every row")
	flag.IntVar(&o.minWithout, "min-success-without-script", 95, "the same for people whose browsers run no scripts")
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
	o.maxGuesses = cmp.Or(o.maxGuesses, map[string]int{"attacks": 50_000, "guesses": 2_000_000}[o.table])
	stores, err := o.stores()
	if err != nil {
		return err
	}
	chosen, err := o.rows()
	if err != nil {
		return err
	}
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
	var failures error
	for _, name := range stores {
		store, err := openStore(ctx, name)
		if err != nil {
			return errors.Join(failures, err)
		}
		failures = errors.Join(failures, o.runStore(ctx, store, chosen, dir), store.close())
	}
	return failures
}

// runStore runs the rows on one store, prints their table, and returns an error for each
// requirement that is not met.
func (o options) runStore(ctx context.Context, store *store, chosen []row, dir string) (failures error) {
	var results []result
	for _, r := range chosen {
		began := time.Now()
		found, err := runRow(ctx, r, store, o, dir)
		if err != nil {
			return errors.Join(failures, fmt.Errorf("%s on %s: %w", r.name, store.name, err))
		}
		fmt.Fprintf(os.Stderr, "%s on %s took %.0f s: %s\n", r.name, store.name, time.Since(began).Seconds(),
			found.summary())
		results = append(results, found)
		failures = errors.Join(failures, found.check(o))
	}
	text := table(o.table, results)
	fmt.Printf("\n%s on %s, %d s each\n\n%s\n", o.table, store.title, o.seconds, text)
	if o.write == "" {
		return failures
	}
	return errors.Join(failures, writeBlock(o.write, o.table+" "+store.name, text))
}

func (o options) stores() ([]string, error) {
	switch o.store {
	case "":
		return []string{"sqlite", "postgres"}, nil
	case "sqlite", "postgres":
		return []string{o.store}, nil
	}
	return nil, fmt.Errorf("unknown store %q: choose sqlite or postgres", o.store)
}

func (o options) rows() (chosen []row, err error) {
	all, known := map[string][]row{"attacks": rows(), "guesses": guessRows()}[o.table]
	if !known {
		return nil, fmt.Errorf("unknown table %q: choose attacks or guesses", o.table)
	}
	for _, r := range all {
		if strings.HasPrefix(r.name, o.row) {
			chosen = append(chosen, r)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no row has a name that starts with %q", o.row)
	}
	return chosen, nil
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

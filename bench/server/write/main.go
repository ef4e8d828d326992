// Command write stores grants, each until the disk flush returns, and prints the rate.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/pasteport/pasteport/bench/load"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run takes the store, the number of concurrent writers, the measuring time and the file.
func run(arguments []string) (err error) {
	if len(arguments) != 4 {
		return errors.New("usage: write STORE WRITERS LENGTH FILE")
	}
	writers, wrong := strconv.Atoi(arguments[1])
	length, mistaken := time.ParseDuration(arguments[2])
	if err := errors.Join(wrong, mistaken); err != nil {
		return err
	}
	open, together := openStore, 1
	switch arguments[0] {
	case "raw database":
		open = openRaw
	case "raw database at once": // the upper limit of group commit
		open, writers, together = openRaw, 1, writers
	}
	add, closeStore, err := open(arguments[3])
	if err != nil {
		return fmt.Errorf("opening %s: %w", arguments[0], err)
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	before := time.Duration(0)
	loop := load.Loop{
		Clients: writers,
		Warmup:  length / 4,
		Length:  length,
		Mark:    func() { before = cpu() },
	}
	took, measured, err := loop.Run(func(int) error { return add(together) })
	if err != nil {
		return err
	}
	count := float64(len(took) * together)
	return json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"per s":     count / measured.Seconds(),
		"CPU µs/op": float64((cpu() - before).Microseconds()) / count,
		"p50 ms":    took.Quantile(.5).Seconds() * 1e3,
		"p99 ms":    took.Quantile(.99).Seconds() * 1e3,
	})
}

func cpu() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// Command newcomer acts like a new user of the project: it installs the binary from a clean copy as
// README.md says, starts the demo in a terminal, and follows the instructions in the terminal and
// on the pages, in a phone-sized browser. It ends its own connection, checks that the client is
// refused, and finds all steps in the trace. Run it from the module's root, with tmux and chromium
// on the PATH:
//
//	go run ./features/newcomer
//
// It saves screenshots of the pages and the output of the terminals in build/newcomer.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// limit is the time limit of the whole run.
const limit = 2 * time.Minute

// left is the folder for screenshots and output.
const left = "build/newcomer"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "newcomer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "pasteport-newcomer-")
	if err != nil {
		return fmt.Errorf("making a folder for the run: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	n := &newcomer{home: dir}
	if err := n.prepare(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.leave()) }()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the run took longer than %s", limit))
	defer cancel()
	return n.live(ctx)
}

// live runs the steps of the story in order and stops at the first failure.
func (n *newcomer) live(ctx context.Context) error {
	story, began := n.story(), time.Now()
	for i, step := range story {
		from := time.Now()
		seen, err := step.take(ctx)
		if err != nil {
			fmt.Printf("%2d. %-34s FAILED after %.1f s\n", i+1, step.name, time.Since(from).Seconds())
			return fmt.Errorf("step %d of %d, %q: %w", i+1, len(story), step.name, err)
		}
		fmt.Printf("%2d. %-34s %5.1f s  %s\n", i+1, step.name, time.Since(from).Seconds(), seen)
		if i == 0 {
			n.installed = time.Since(from)
		}
	}
	took := time.Since(began)
	fmt.Printf("%.1f s of at most %.0f s: %.1f s to install with what Go had compiled before, %.1f s for all else; "+
		"see %s\n",
		took.Seconds(), limit.Seconds(), n.installed.Seconds(), (took - n.installed).Seconds(), left)
	return nil
}

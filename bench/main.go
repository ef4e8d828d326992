// Command bench measures Pasteport beside bare Echo and beside other OAuth servers, and writes down how they compare. README.md says how to read that.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

type options struct {
	rounds         int
	warmup, length time.Duration
	short, check   bool
	lines, skip    string
	flows          int
	sessions       int
	profile        string
	out            string
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	b, err := newBench()
	if err != nil {
		return err
	}
	defer b.openClientSite()()
	if err := b.build(); err != nil {
		return errors.Join(err, os.RemoveAll(b.programs))
	}
	defer func() { _ = os.RemoveAll(b.programs) }()
	return b.all()
}

func newBench() (b *bench, err error) {
	b = new(bench)
	flag.IntVar(&b.rounds, "rounds", 7, "`rounds` of each line; 3 with --short")
	flag.DurationVar(&b.length, "length", 3*time.Second, "how long each server is measured in a round; 1s with --short")
	flag.BoolVar(&b.short, "short", false, "only what CI compares, with bare Echo and with the raw database")
	flag.BoolVar(&b.check, "check", false, "fail when a ratio is more than a quarter worse than in "+figuresFile)
	flag.StringVar(&b.lines, "only", "", "only the lines whose `name` begins so")
	flag.StringVar(&b.skip, "skip", "", "servers that are left out, by `names` with commas")
	flag.IntVar(&b.flows, "flows", 25_000, "code `flows` after which memory and disk are looked at")
	flag.IntVar(&b.sessions, "sessions", 10_000, "idle `sessions`")
	flag.StringVar(&b.profile, "profile", "", "write profiles of Pasteport's processes into this `folder`")
	flag.StringVar(&b.out, "out", "RESULTS.md", "the `file` that the table is written to, with "+figuresFile+" beside it; a part of the lines is shown unless it is named")
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if b.short && !given["rounds"] {
		b.rounds = 3
	}
	if b.short && !given["length"] {
		b.length = time.Second
	}
	if (b.short || b.lines != "" || b.skip != "") && !given["out"] {
		b.out = ""
	}
	b.warmup = b.length / 4
	b.serverCPU, err = pinLoad()
	return b, err
}

// chosen are the lines of this run.
func (b *bench) chosen() (chosen []line) {
	for _, l := range lines {
		if (!b.short || l.short) && strings.HasPrefix(l.name, b.lines) {
			if b.short {
				l = l.shortened()
			}
			chosen = append(chosen, l)
		}
	}
	return chosen
}

// shortened keeps what CI watches, on any computer: how much is paid on top of what nobody can avoid.
func (l line) shortened() line {
	l.compare = slices.DeleteFunc(slices.Clone(l.compare), func(c comparison) bool {
		return c.metric != rate || c.peer != bareEcho && c.peer != rawDatabase || strings.Contains(c.ours, "+")
	})
	l.servers = slices.DeleteFunc(slices.Clone(l.servers), func(server string) bool {
		return !slices.ContainsFunc(l.compare, func(c comparison) bool { return c.ours == server || c.peer == server })
	})
	return l
}

// only leaves out what was not asked for.
func (b *bench) only(servers []string) []string {
	return slices.DeleteFunc(slices.Clone(servers), func(server string) bool { return slices.Contains(strings.Split(b.skip, ","), server) })
}

func (b *bench) all() error {
	chosen := b.chosen()
	if len(chosen) == 0 {
		return fmt.Errorf("there is no line %q", b.lines)
	}
	var measured []results
	for _, l := range chosen {
		r, err := b.run(l)
		if err != nil {
			return err
		}
		measured = append(measured, r)
	}
	if b.check {
		return b.compareWithCommitted(measured)
	}
	return b.write(measured)
}

// Command bench compares Pasteport with bare Echo and with other OAuth servers. README.md describes
// the method.
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
	before         string
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
	flag.DurationVar(&b.length, "length", 3*time.Second, "measuring time per server and round; 1s with --short")
	flag.BoolVar(&b.short, "short", false, "measure only the ratios to bare Echo and to the raw database, as CI does")
	flag.BoolVar(&b.check, "check", false, "fail if a ratio is more than a quarter worse than in "+figuresFile)
	flag.StringVar(&b.lines, "only", "", "measure only the lines whose name starts with `name`")
	flag.StringVar(&b.skip, "skip", "", "leave out these servers (`names` separated by commas)")
	flag.IntVar(&b.flows, "flows", 25_000, "number of code `flows` before memory and disk are measured")
	flag.IntVar(&b.sessions, "sessions", 10_000, "number of idle `sessions`")
	flag.StringVar(&b.profile, "profile", "", "write profiles of Pasteport's processes to this `folder`")
	flag.StringVar(&b.before, "before", "",
		"compare only Pasteport's CPU time with that of an earlier tree, whose server programs are in this `folder`")
	flag.StringVar(&b.out, "out", "RESULTS.md", "write the table to this `file`, and "+figuresFile+
		" to its folder; without --out, a run of some lines only prints the table")
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if b.short && !given["rounds"] {
		b.rounds = 3
	}
	if b.short && !given["length"] {
		b.length = time.Second
	}
	if (b.short || b.lines != "" || b.skip != "" || b.before != "") && !given["out"] {
		b.out = ""
	}
	b.warmup = b.length / 4
	b.serverCPU, err = pinLoad()
	return b, err
}

// chosen returns the lines of this run.
func (b *bench) chosen() (chosen []line) {
	for _, l := range lines {
		if (!b.short || l.short) && strings.HasPrefix(l.name, b.lines) {
			if b.short {
				l = l.shortened()
			}
			if b.before != "" {
				l = l.besideBefore()
			}
			if len(l.servers) == 0 {
				continue
			}
			chosen = append(chosen, l)
		}
	}
	return chosen
}

// besideBefore compares Pasteport with the same server of an earlier tree, on each database, with
// tools and as a gateway, under a load without a fixed rate.
func (l line) besideBefore() line {
	servers := l.servers
	l.servers, l.compare = nil, nil
	if l.scenario == "" || l.rate > 0 {
		return l
	}
	for _, server := range []string{ours, onPostgres, onMariaDB, ourTools, ourGateway} {
		if slices.Contains(servers, server) {
			l.servers = append(l.servers, server, server+earlier)
			l.compare = append(l.compare, against(cpuTime, server, bar{peer: server + earlier})...)
		}
	}
	return l
}

// shortened keeps the comparisons that CI checks, because they vary least between computers: the
// cost above bare Echo and the raw database.
func (l line) shortened() line {
	l.compare = slices.DeleteFunc(slices.Clone(l.compare), func(c comparison) bool {
		return c.metric != rate || c.peer != bareEcho && c.peer != rawDatabase || strings.Contains(c.ours, "+")
	})
	l.servers = slices.DeleteFunc(slices.Clone(l.servers), func(server string) bool {
		return !slices.ContainsFunc(l.compare, func(c comparison) bool { return c.ours == server || c.peer == server })
	})
	return l
}

// only removes the servers named by --skip.
func (b *bench) only(servers []string) []string {
	return slices.DeleteFunc(slices.Clone(servers), func(server string) bool {
		return slices.Contains(strings.Split(b.skip, ","), server)
	})
}

func (b *bench) all() error {
	chosen := b.chosen()
	if len(chosen) == 0 {
		return fmt.Errorf("no line starts with %q", b.lines)
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

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const head = `# Results

` + "`go run .`" + ` writes this page. [README.md](README.md) explains the method and the servers.
"a ÷ b" divides the values of two servers in the same round, "a − b" subtracts them, and one name
alone is an absolute value. "ratio" is the median of the rounds, and "spread" the lowest and the
highest round. "ours" is the first server, "peer" the second. CPU is that of the server process.

| line | what is compared | ratio | spread | floor | goal | | ours | peer | CPU µs/op ours | peer | p99 ratio |
|---|---|--:|--:|--:|--:|---|--:|--:|--:|--:|--:|
`

// write writes the table and the figures, or prints the table when only some lines were measured.
func (b *bench) write(measured []results) error {
	var text strings.Builder
	text.WriteString(head)
	for _, r := range measured {
		for _, c := range r.compared() {
			text.WriteString(r.row(c))
		}
	}
	text.WriteString("\n" + b.circumstances() + busiest(measured) + "\n" + remarks)
	if b.out == "" {
		fmt.Print(text.String())
		return nil
	}
	if err := os.WriteFile(b.out, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return writeFigures(filepath.Dir(b.out), measured)
}

const remarks = `
Smeldr is not in the table, because the Go module proxy does not serve it.
`

func (b *bench) circumstances() string {
	return fmt.Sprintf("%d rounds of %s each; memory and disk after %d code flows and with %d sessions; %s, %s/%s; "+
		"servers on one CPU, the load generator on another.",
		b.rounds, b.length, b.flows, b.sessions, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func (r results) row(c comparison) string {
	s := r.compare(c)
	p99 := ""
	if ours, has := r.median(c.ours, tail); has && c.peer != "" {
		if peers, has := r.median(c.peer, tail); has {
			p99 = short(ours / peers)
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s–%s | %s | %s | %s | %s | %s | %s | %s | %s |\n", r.line.name, c.name(),
		short(s.median), short(s.least), short(s.most),
		c.limit(c.floor), c.limit(c.goal), c.verdict(s.median), r.cell(c.ours, c.metric), r.cell(c.peer, c.metric),
		r.cell(c.ours, cpuTime), r.cell(c.peer, cpuTime), p99)
}

func (r results) cell(server string, m metric) string {
	if value, has := r.median(server, m); has {
		return short(value)
	}
	return ""
}

func (c comparison) limit(value float64) string {
	switch {
	case value == 0:
		return ""
	case c.moreIsBetter():
		return "≥ " + short(value)
	}
	return "≤ " + short(value)
}

func (c comparison) verdict(value float64) string {
	switch {
	case c.floor == 0 && c.goal == 0:
		return ""
	case c.goal != 0 && c.meets(value, c.goal):
		return "goal"
	case c.floor != 0 && c.meets(value, c.floor):
		return "floor"
	}
	return "below"
}

// busiest reports how close the load generator came to its own limit.
func busiest(measured []results) string {
	most, where := 0.0, ""
	for _, r := range measured {
		for _, server := range r.line.servers {
			if value, has := r.median(server, busy); has && value > most {
				most, where = value, r.line.name+" on "+server
			}
		}
	}
	if where == "" {
		return ""
	}
	return fmt.Sprintf(" The load generator polls its connections; at most %.0f %% of its polls found a response (%s).",
		most*100, where)
}

package main

import (
	"fmt"
	"os"
	"strings"
)

// table writes the results in Markdown.
func table(name string, results []result) string {
	if name == "guesses" {
		return guessTable(results)
	}
	return attackTable(results)
}

func attackTable(results []result) string {
	var text strings.Builder
	text.WriteString("| attack | per second | honest people | came | got in | after a retry | before: p50 / p99 | during: p50 / p99 | without script: p50 | memory | limits | guesses per hour, at most |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		attack := r.row.attacker
		if r.note != "" {
			attack += " (" + r.note + ")"
		}
		fmt.Fprintf(&text, "| %s | %.1f | %s | %d | %.0f %% | %d | %s / %s ms | %s / %s ms | %s ms | %.0f MiB, then %.0f MiB | %s | %.0f |\n",
			attack, r.rate, r.row.people, len(r.during), success(r.during), retried(r.during),
			quantile(r.before, false, 0.5), quantile(r.before, false, 0.99), quantile(r.during, false, 0.5), quantile(r.during, false, 0.99),
			quantile(r.during, true, 0.5), r.memory, r.peak, r.limited, r.guessesPerHour())
	}
	return text.String()
}

func guessTable(results []result) string {
	var text strings.Builder
	text.WriteString("| attacker | guesses sent per second | guesses judged | per hour, at most | honest people who got in |\n|---|---|---|---|---|\n")
	for _, r := range results {
		fmt.Fprintf(&text, "| %s | %.1f | %d in %.0f s | %.0f | %.0f %% of %d |\n",
			r.row.attacker, r.rate, r.guesses, r.lasted.Seconds(), r.guessesPerHour(), success(r.during), len(r.during))
	}
	return text.String()
}

// writeBlock replaces what is between the marks of the block in a Markdown file.
func writeBlock(file, name, text string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the file with the tables: %w", err)
	}
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	before, rest, begins := strings.Cut(string(content), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return fmt.Errorf("%s has no block %q: add the lines %q and %q", file, name, strings.TrimSpace(begin), end)
	}
	return os.WriteFile(file, []byte(before+begin+text+end+after), 0o644)
}

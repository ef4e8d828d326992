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

var attackHead = []string{"attack", "per second", "honest people", "came", "got in", "after a retry",
	"before: p50 / p99", "during: p50 / p99",
	"without JavaScript", "memory", "limits", "guesses per hour, at most"}

func attackTable(results []result) string {
	text := head(attackHead)
	for _, r := range results {
		attack := r.row.attacker
		if r.note != "" {
			attack += " (" + r.note + ")"
		}
		able := r.people(false)
		text += fmt.Sprintf(
			"| %s | %.1f | %s | %d | %.0f%% | %d | %s | %s | %s | %.0f MiB, at most %.0f MiB | %s | %.0f |\n",
			attack, r.rate, r.row.people, len(able), success(able), retried(able), latency(r.before), latency(able),
			r.withoutScript(), r.memory, r.peak, r.limited, r.guessesPerHour())
	}
	return text
}

func (found result) withoutScript() string {
	some := found.people(true)
	return fmt.Sprintf("%.0f%% of %d, p50 %s ms", success(some), len(some), quantile(some, 0.5))
}

func latency(all []outcome) string { return quantile(all, 0.5) + " / " + quantile(all, 0.99) + " ms" }

var guessHead = []string{"attacker", "requests per second", "guesses that were checked", "per hour, at most",
	"honest people who got in", "limits"}

func guessTable(results []result) string {
	text := head(guessHead)
	for _, r := range results {
		text += fmt.Sprintf("| %s | %.1f | %d in the first %.0f s, then %d in %.0f s | %.0f | %.0f%% of %d | %s |\n",
			r.row.attacker, r.rate,
			r.early, r.row.warmUp.Seconds(), r.guesses, r.lasted.Seconds(), r.guessesPerHour(), success(r.during),
			len(r.during), r.limited)
	}
	return text
}

func head(columns []string) string {
	return "| " + strings.Join(columns, " | ") + " |\n" + strings.Repeat("|---", len(columns)) + "|\n"
}

// writeBlock replaces the text between the marker lines of the block in a Markdown file.
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

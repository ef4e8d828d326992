package main

import (
	"fmt"
	"os"
	"strings"
)

// table writes the results in Markdown.
func table(results []result) string {
	text := "|attack|requests a second|elsewhere, at once|same network, known token, at once|" +
		"same network, new token, in 40 s; told when|wrong tokens checked|MiB|\n|---|--:|--:|--:|--:|--:|--:|\n"
	for _, r := range results {
		isIn := func(o outcome) bool { return o.err == nil }
		isOnlyTold := func(o outcome) bool { return o.err != nil && o.told }
		text += fmt.Sprintf("|%s|%.0f|%d%%|%d%%|%d%%; %d%%|%d in %.0f s|%.0f|\n", r.row.attack, r.requests,
			share(r.elsewhere, outcome.isAtOnce), share(r.known, outcome.isAtOnce), share(r.new, isIn),
			share(r.new, isOnlyTold), r.guesses, r.lasted.Seconds(), r.memory)
	}
	return text
}

// writeBlock replaces the text between the marker lines in a Markdown file.
func writeBlock(file, text string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the file with the table: %w", err)
	}
	const begin, end = "<!-- begin attacks -->\n", "<!-- end attacks -->"
	before, rest, begins := strings.Cut(string(content), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return fmt.Errorf("%s has no block: add the lines %q and %q", file, strings.TrimSpace(begin), end)
	}
	return os.WriteFile(file, []byte(before+begin+text+end+after), 0o644)
}

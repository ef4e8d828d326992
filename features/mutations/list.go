package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed mutations.tsv
var table string

// mutation is a deliberate fault in one line of the product.
type mutation struct {
	rule   string // the number of the rule whose specs must fail
	file   string // path from the root of the module
	loses  string // the behaviour that the product loses
	before string // the text to replace; it occurs once in the file
	after  string
}

func (m mutation) String() string { return fmt.Sprintf("%-4s %s: %s", m.rule, m.file, m.loses) }

// selection chooses mutations by rule and by file. An empty list chooses all.
type selection struct{ rules, files []string }

// toolFolders hold the list of mutations and the code that finds the specs of a rule. A change
// there affects all mutations.
var toolFolders = []string{"features/mutations/", "features/matrix/"}

func (s selection) has(m mutation) bool {
	isTool := func(file string) bool {
		return slices.ContainsFunc(toolFolders, func(folder string) bool { return strings.HasPrefix(file, folder) })
	}
	return (len(s.rules) == 0 || slices.Contains(s.rules, m.rule)) &&
		(len(s.files) == 0 || slices.Contains(s.files, m.file) || slices.ContainsFunc(s.files, isTool))
}

// mutations returns the chosen mutations of the list.
func mutations(wanted selection) (found []mutation, err error) {
	for number, line := range strings.Split(strings.TrimSpace(table), "\n") {
		fields := strings.Split(line, "\t")
		if len(fields) != 5 {
			return nil, fmt.Errorf("mutations.tsv:%d has %d columns, want 5", number+1, len(fields))
		}
		if m := (mutation{fields[0], fields[1], fields[2], fields[3], fields[4]}); wanted.has(m) {
			found = append(found, m)
		}
	}
	return found, nil
}

// write writes the mutated file to a folder and returns its path.
func (m mutation) write(folder string) (string, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", fmt.Errorf("reading the file to mutate: %w", err)
	}
	if times := strings.Count(string(source), m.before); times != 1 {
		return "", fmt.Errorf("%s contains %q %d times, want once: change its row in mutations.tsv", m.file,
			m.before, times)
	}
	name := filepath.Join(folder, "mutated.go")
	mutated := strings.Replace(string(source), m.before, m.after, 1)
	if err := os.WriteFile(name, []byte(mutated), 0o600); err != nil {
		return "", fmt.Errorf("writing the mutation: %w", err)
	}
	return name, nil
}

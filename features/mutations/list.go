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
var listed string

// mutation is one line of the product made wrong on purpose.
type mutation struct {
	rule   string // of the behaviour catalogue, whose specs have to notice
	file   string // from the module's root
	loses  string // what the product no longer does
	before string // the text to replace, which occurs once
	after  string
}

func (m mutation) String() string { return fmt.Sprintf("%-4s %s: %s", m.rule, m.file, m.loses) }

// selection is of the mutations of some rules, or in some files, or all.
type selection struct{ rules, files []string }

// own are the folders of the list and of the labels that choose specs: a change of them concerns all mutations.
var own = []string{"features/mutations/", "features/matrix/"}

func (s selection) has(m mutation) bool {
	isOwn := func(file string) bool {
		return slices.ContainsFunc(own, func(folder string) bool { return strings.HasPrefix(file, folder) })
	}
	return (len(s.rules) == 0 || slices.Contains(s.rules, m.rule)) &&
		(len(s.files) == 0 || slices.Contains(s.files, m.file) || slices.ContainsFunc(s.files, isOwn))
}

// mutations returns those of the list that are wanted.
func mutations(wanted selection) (found []mutation, err error) {
	for number, line := range strings.Split(strings.TrimSpace(listed), "\n") {
		fields := strings.Split(line, "\t")
		if len(fields) != 5 {
			return nil, fmt.Errorf("mutations.tsv:%d has %d columns where there should be 5", number+1, len(fields))
		}
		if m := (mutation{fields[0], fields[1], fields[2], fields[3], fields[4]}); wanted.has(m) {
			found = append(found, m)
		}
	}
	return found, nil
}

// write puts the mutated file into a folder and returns its name there.
func (m mutation) write(folder string) (string, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", fmt.Errorf("reading what to mutate: %w", err)
	}
	if times := strings.Count(string(source), m.before); times != 1 {
		return "", fmt.Errorf("%s has %q %d times where it should be there once", m.file, m.before, times)
	}
	name := filepath.Join(folder, "mutated.go")
	mutated := strings.Replace(string(source), m.before, m.after, 1)
	if err := os.WriteFile(name, []byte(mutated), 0o600); err != nil {
		return "", fmt.Errorf("writing the mutation: %w", err)
	}
	return name, nil
}

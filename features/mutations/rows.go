package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed mutations.tsv
var table string

// row is a deliberate fault in a function of the product.
type row struct {
	line          int    // in mutations.tsv
	promise       string // the heading above the row: how a promise of SECURITY.md begins
	rule          string // the number of the rule whose specs must fail
	in            string // the function with the name of its package, such as oauth.AccessGrant.End
	loses         string // the behaviour that the product loses
	before, after string // what the function contains once, and what replaces it
}

func (r row) String() string { return fmt.Sprintf("%-4s %s: %s", r.rule, r.in, r.loses) }

const heading = "# "

// readRows reads the text of mutations.tsv.
func readRows(table string) (rows []row, err error) {
	promise := ""
	for i, line := range strings.Split(strings.TrimRight(table, "\n"), "\n") {
		if text, found := strings.CutPrefix(line, heading); found {
			promise = text
			continue
		}
		columns := strings.Split(line, "\t")
		if len(columns) != 5 {
			return nil, fmt.Errorf("mutations.tsv:%d has %d columns, want 5", i+1, len(columns))
		}
		rows = append(rows, row{
			line:    i + 1,
			promise: promise,
			rule:    columns[0],
			in:      columns[1],
			loses:   columns[2],
			before:  columns[3],
			after:   columns[4],
		})
	}
	return rows, nil
}

// selection chooses mutations by rule and by file. An empty list chooses all.
type selection struct{ rules, files []string }

// toolFolders hold the rows and the code that finds the specs of a rule. A change there affects all
// mutations.
var toolFolders = []string{"features/mutations/", "features/matrix/"}

func (s selection) has(m mutation) bool {
	isTool := func(file string) bool {
		return slices.ContainsFunc(toolFolders, func(folder string) bool { return strings.HasPrefix(file, folder) })
	}
	return (len(s.rules) == 0 || slices.Contains(s.rules, m.rule)) &&
		(len(s.files) == 0 || slices.Contains(s.files, m.file.path) || slices.ContainsFunc(s.files, isTool))
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

const budgetsFile = "features/laws/budgets.tsv"

// budget is the most lines that some folders, and the folders in them without a row, may have.
type budget struct {
	most    int
	folders []string
	now     int // the lines that they have
}

type budgets []*budget

// readBudgets reads the file of budgets: in each row a number, a tab and the folders.
func readBudgets() (all budgets, err error) {
	text, err := os.ReadFile(budgetsFile)
	if err != nil {
		return nil, fmt.Errorf("reading the budgets: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		number, folders, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		most, err := strconv.Atoi(number)
		if err != nil || folders == "" {
			return nil, fmt.Errorf("reading the budgets: %q is not a number, a tab and folders", line)
		}
		all = append(all, &budget{most: most, folders: strings.Fields(folders)})
	}
	if all.of(".") == nil {
		return nil, errors.New("reading the budgets: no row has the folder \".\"")
	}
	return all, nil
}

// of returns the budget with exactly this folder.
func (all budgets) of(folder string) *budget {
	for _, b := range all {
		if slices.Contains(b.folders, folder) {
			return b
		}
	}
	return nil
}

// count assigns the lines of each folder to the row with the longest path, and returns their sum.
func (all budgets) count(lines map[string]int) (sum int) {
	for folder, n := range lines {
		sum += n
		for all.of(folder) == nil {
			folder = path.Dir(folder)
		}
		all.of(folder).now += n
	}
	return sum
}

// lower writes today's lines over the budgets that are higher.
func (all budgets) lower() error {
	text, err := os.ReadFile(budgetsFile)
	if err != nil {
		return fmt.Errorf("reading the budgets: %w", err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			out.WriteString(line)
		}
	}
	for _, b := range all {
		fmt.Fprintf(&out, "%d\t%s\n", min(b.most, b.now), strings.Join(b.folders, " "))
	}
	if err := os.WriteFile(budgetsFile, []byte(out.String()), 0o600); err != nil {
		return fmt.Errorf("writing the budgets: %w", err)
	}
	return nil
}

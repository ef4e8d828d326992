package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
)

// passed is the only accepted status: warnings and skipped checks are failures too.
const passed = "SUCCESS"

// check is one result of the suite.
type check struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	Message string `json:"errorMessage"`
}

type outcome struct {
	version, scenario string
	checks            []check
}

// readChecks reads the results of one scenario from its folder.
func readChecks(results, scenario string) ([]check, error) {
	files, err := filepath.Glob(filepath.Join(results, "*"+scenario+"-*", "checks.json"))
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		return nil, fmt.Errorf("the suite wrote %d results instead of one", len(files))
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	var checks []check
	if err := json.Unmarshal(text, &checks); err != nil {
		return nil, err
	}
	if len(checks) == 0 {
		return nil, fmt.Errorf("the suite checked nothing")
	}
	return checks, nil
}

// report prints the table, and returns an error if checks did not pass.
func report(w io.Writer, outcomes []outcome) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SPEC VERSION\tSCENARIO\tCHECK\tRESULT")
	total, failed := 0, 0
	for _, o := range outcomes {
		for _, c := range o.checks {
			total++
			if c.Status != passed {
				failed++
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s %s\n", o.version, o.scenario, c.ID, c.Status, c.Message)
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the results: %w", err)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks did not pass", failed, total)
	}
	_, err := fmt.Fprintf(w, "%d of %d checks passed\n", total, total)
	return err
}

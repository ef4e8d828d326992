// Command write brings docs/rules.md and features/README.md up to date with the rules and the labels of the specs. Run it from the module's root.
package main

import (
	"fmt"
	"os"

	"github.com/pasteport/pasteport/features/matrix"
)

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write() error {
	rules, err := matrix.Read(".")
	if err != nil {
		return err
	}
	for _, problem := range rules.Problems() {
		fmt.Fprintln(os.Stderr, problem)
	}
	pages, err := rules.Pages()
	if err != nil {
		return err
	}
	for _, page := range pages {
		if err := os.WriteFile(page.Path, []byte(page.Text), 0o644); err != nil {
			return fmt.Errorf("writing a page: %w", err)
		}
	}
	return nil
}

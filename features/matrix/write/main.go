// Command write brings features/README.md up to date with the labels of the specs. Run it from the module's root.
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
	page, err := rules.README()
	if err != nil {
		return err
	}
	if err := os.WriteFile("features/README.md", []byte(page), 0o644); err != nil {
		return fmt.Errorf("writing the matrix: %w", err)
	}
	return nil
}

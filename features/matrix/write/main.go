// Command write writes the pages about rules and specs: docs/rules.md, features/README.md, and
// build/rules-and-specs.md, which is not committed. With -proofs it writes only the last one. Run
// it from the root of the module.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pasteport/pasteport/features/matrix"
)

func main() {
	proofsOnly := flag.Bool("proofs", false, "write only the page of the rules with their specs")
	flag.Parse()
	if err := write(*proofsOnly); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(proofsOnly bool) error {
	rules, err := matrix.Read(".")
	if err != nil {
		return err
	}
	for _, problem := range rules.Problems() {
		fmt.Fprintln(os.Stderr, problem)
	}
	proofs, err := rules.Proofs()
	if err != nil {
		return err
	}
	pages := []matrix.Page{proofs}
	if !proofsOnly {
		committed, err := rules.Pages()
		if err != nil {
			return err
		}
		pages = append(pages, committed...)
	}
	for _, page := range pages {
		if err := writePage(page); err != nil {
			return fmt.Errorf("writing a page: %w", err)
		}
	}
	return nil
}

func writePage(page matrix.Page) error {
	if err := os.MkdirAll(filepath.Dir(page.Path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(page.Path, []byte(page.Text), 0o644)
}

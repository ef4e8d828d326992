// Command mutations breaks one line of the product at a time, as mutations.tsv lists them, and sees that the specs of the rule
// that is broken go red. The files themselves stay as they are: Go builds with the broken one in their place. Run it from the
// module's root, with the numbers of rules for some of the list only.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pasteport/pasteport/features/matrix"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run reports every mutation; its error names those that nobody noticed.
func run(rules []string) error {
	list, err := mutations(rules)
	if err != nil {
		return err
	}
	proofs, err := matrix.Read(".")
	if err != nil {
		return fmt.Errorf("reading the matrix: %w", err)
	}
	verdicts := make([]error, len(list))
	var group errgroup.Group
	group.SetLimit(2) // while one links, which takes one CPU, the other builds
	for i, m := range list {
		group.Go(func() error {
			began := time.Now()
			by, err := noticed(m, packages(proofs, m))
			if err != nil {
				verdicts[i], by = fmt.Errorf("%s: %w", m, err), "nobody"
			}
			fmt.Printf("%2d/%d %s\n      noticed by %s (%.0f s)\n", i+1, len(list), m, by, time.Since(began).Seconds())
			return nil
		})
	}
	_ = group.Wait() // a mutation that nobody noticed does not end the others
	survivors := slices.DeleteFunc(verdicts, func(err error) bool { return err == nil })
	fmt.Printf("%d of %d mutations were noticed\n", len(list)-len(survivors), len(list))
	return errors.Join(survivors...)
}

// packages are those with specs for the mutation's rule, the nearest one first, because it is the fastest.
func packages(proofs *matrix.Matrix, m mutation) (found []string) {
	for _, spec := range proofs.Specs {
		if slices.Contains(spec.Labels(), m.rule) {
			found = append(found, "./"+path.Dir(spec.File))
		}
	}
	slices.SortFunc(found, func(a, b string) int {
		return cmp.Or(distance(a, m.file)-distance(b, m.file), strings.Compare(a, b))
	})
	return slices.Compact(found)
}

func distance(folder, file string) int {
	if folder == "./"+path.Dir(file) {
		return 0
	}
	return 1
}

var errUnnoticed = errors.New("no spec of its rule goes red")

// noticed returns the first package whose specs of the rule go red, or errUnnoticed.
func noticed(m mutation, packages []string) (by string, err error) {
	folder, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return "", fmt.Errorf("making a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	overlay, err := m.overlay(folder)
	if err != nil {
		return "", err
	}
	for _, pack := range packages {
		red, err := goesRed(overlay, m.rule, pack)
		if err != nil || red {
			return pack, err
		}
	}
	return "", errUnnoticed
}

// overlay writes what tells Go to build the mutated file in place of the original.
func (m mutation) overlay(folder string) (string, error) {
	mutated, err := m.write(folder)
	if err != nil {
		return "", err
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", fmt.Errorf("finding the original: %w", err)
	}
	content, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		return "", fmt.Errorf("encoding the overlay: %w", err)
	}
	name := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		return "", fmt.Errorf("writing the overlay: %w", err)
	}
	return name, nil
}

// goesRed runs the specs of one rule. What does not build, or has no result, proves nothing and is an error.
func goesRed(overlay, rule, pack string) (bool, error) {
	test := exec.Command("go", "test", "-vet=off", "-count=1", "-run=^Test", "-timeout=5m", "-overlay="+overlay, pack,
		"-ginkgo.fail-fast", "-ginkgo.timeout=4m", "-ginkgo.label-filter="+rule) // a spec that hangs is red before go test gives up
	var output bytes.Buffer
	test.Stdout, test.Stderr = &output, &output
	err := test.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false, nil
	case !errors.As(err, &exit):
		return false, fmt.Errorf("running go test: %w", err)
	case strings.Contains(output.String(), "\n--- FAIL: Test"):
		return true, nil
	}
	return false, fmt.Errorf("go test neither passed nor failed a spec:\n%s", output.Bytes())
}

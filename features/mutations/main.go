// Command mutations applies the mutations of mutations.tsv one at a time, and checks that a spec of
// the named rule fails. It does not change the files: an overlay makes Go build the mutated file in
// place of the original. Run it from the root of the module:
//
//	mutations               all
//	mutations D16 G8        the mutations of two rules
//	mutations -in FILE ...  the mutations of changed files
//	mutations -check        none, but each row must match the code exactly once
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pasteport/pasteport/features/engines"
	"github.com/pasteport/pasteport/features/matrix"
)

func main() {
	var files fileList
	flag.Var(&files, "in", "apply only the mutations of this `file`; may be repeated")
	check := flag.Bool("check", false, "only check that each row matches the code")
	flag.Parse()
	if err := run(selection{rules: flag.Args(), files: files}, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fileList is a flag that may be repeated.
type fileList []string

func (l *fileList) String() string { return strings.Join(*l, " ") }

// Set implements flag.Value.
func (l *fileList) Set(value string) error { *l = append(*l, value); return nil }

// workers is the number of concurrent runs. It may exceed the number of processors, because linking
// uses only one and specs wait.
const workers = 3

// run applies the wanted mutations, unless it only checks the rows.
func run(wanted selection, onlyCheck bool) error {
	all, err := mutations(".")
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(all, func(m mutation) bool { return !wanted.has(m) })
	switch {
	case onlyCheck:
		fmt.Printf("%d mutations match the code\n", len(chosen))
		return nil
	case len(chosen) == 0:
		fmt.Println("no mutation in mutations.tsv matches the chosen rules or files")
		return nil
	}
	return apply(chosen)
}

// mutations returns all mutations of the module whose root is given.
func mutations(root string) ([]mutation, error) {
	rows, err := readRows(table)
	if err != nil {
		return nil, err
	}
	code, err := readProduct(root)
	if err != nil {
		return nil, err
	}
	return code.locate(rows)
}

// apply prints a line for every mutation. Its error names those for which no spec fails.
func apply(list []mutation) error {
	proofs, err := matrix.Read(".")
	if err != nil {
		return fmt.Errorf("reading the rules and the specs: %w", err)
	}
	results := make([]error, len(list))
	next := make(chan int)
	var group errgroup.Group
	for range workers {
		environment, stop, err := engines.Share() // specs change the settings of their servers
		if err != nil {
			return err
		}
		group.Go(func() error {
			for i := range next {
				results[i] = try(list[i], proofs, environment, fmt.Sprintf("%d/%d", i+1, len(list)))
			}
			return stop()
		})
	}
	for i := range list {
		next <- i
	}
	close(next)
	err = group.Wait()
	survivors := slices.DeleteFunc(results, func(err error) bool { return err == nil })
	fmt.Printf("specs fail for %d of %d mutations\n", len(list)-len(survivors), len(list))
	return errors.Join(append(survivors, err)...)
}

// try applies one mutation and prints the result.
func try(m mutation, proofs *matrix.Matrix, environment []string, number string) error {
	began := time.Now()
	by, err := failingPackage(m, packages(proofs, m), environment)
	if err != nil {
		err, by = fmt.Errorf("%s: %w", m, err), "no spec"
	}
	fmt.Printf("%s %s\n      fails: %s (%.0f s)\n", number, m, by, time.Since(began).Seconds())
	return err
}

// packages returns the packages with specs of the rule. That of the mutated file comes first, because
// it is the fastest.
func packages(proofs *matrix.Matrix, m mutation) (found []string) {
	for _, spec := range proofs.Specs {
		if slices.Contains(spec.Labels(), m.rule) {
			found = append(found, "./"+path.Dir(spec.File))
		}
	}
	slices.SortFunc(found, func(a, b string) int {
		return cmp.Or(distance(a, m.file.path)-distance(b, m.file.path), strings.Compare(a, b))
	})
	return slices.Compact(found)
}

func distance(folder, file string) int {
	if folder == "./"+path.Dir(file) {
		return 0
	}
	return 1
}

var errNoFailure = errors.New("no spec of its rule fails")

// failingPackage returns the first package in which a spec of the rule fails, or errNoFailure.
func failingPackage(m mutation, packages, environment []string) (by string, err error) {
	folder, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return "", fmt.Errorf("making a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	overlay, err := m.overlay(folder)
	if err != nil {
		return "", err
	}
	for _, pkg := range packages {
		failed, err := specsFail(overlay, m.rule, pkg, environment)
		if err != nil || failed {
			return pkg, err
		}
	}
	return "", errNoFailure
}

// overlay writes the mutated file, and the file for "go test -overlay" that puts it in place of the
// original.
func (m mutation) overlay(folder string) (string, error) {
	mutated := filepath.Join(folder, "mutated.go")
	if err := os.WriteFile(mutated, []byte(m.mutated()), 0o600); err != nil {
		return "", fmt.Errorf("writing the mutation: %w", err)
	}
	original, err := filepath.Abs(m.file.path)
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

// failedSpec is Ginkgo's line for a failed spec. A suite can fail for other reasons, which prove
// nothing.
var failedSpec = regexp.MustCompile(`(?m)^\s*(\x1b\[[\d;]*m)*\[(FAIL|PANICKED!|TIMEDOUT)\]`)

// specsFail runs the specs of one rule in a package. A mutation that does not build, or a run without
// a result, is an error. A spec that hangs fails before go test times out.
func specsFail(overlay, rule, pkg string, environment []string) (bool, error) {
	test := exec.Command("go", "test", "-vet=off", "-count=1", "-run=^Test", "-timeout=3m", "-overlay="+overlay, pkg,
		"-ginkgo.fail-fast", "-ginkgo.timeout=2m", "-ginkgo.label-filter="+rule+" && !soak")
	test.Env = append(append(os.Environ(), environment...), "SPECS_PROCESSES=1")
	var output bytes.Buffer
	test.Stdout, test.Stderr = &output, &output
	err := test.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false, nil
	case !errors.As(err, &exit):
		return false, fmt.Errorf("running go test: %w", err)
	case failedSpec.Match(output.Bytes()):
		return true, nil
	}
	return false, fmt.Errorf("go test failed without a failed spec:\n%s", output.Bytes())
}

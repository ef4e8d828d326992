// Command mutations applies the mutations of mutations.tsv one at a time, and checks that a spec of
// the named rule fails. It builds the specs of a package once, with all mutations, of which an
// environment variable chooses one. It does not change the files: an overlay makes Go build others
// in their place. Run it from the root of the module:
//
//	mutations               all
//	mutations D16 G8        the mutations of two rules
//	mutations -in FILE ...  the mutations of changed files
//	mutations -check        none, but each row must match the code exactly once
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
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
	check := flag.Bool("check", false, "only check that each row matches the code, and compiles")
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
	if len(chosen) == 0 {
		fmt.Println("no mutation in mutations.tsv matches the chosen rules or files")
		return nil
	}
	specs, err := newBuilds(chosen)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(specs.folder) }()
	if err := specs.compile(); err != nil {
		return err
	}
	if onlyCheck {
		fmt.Printf("%d mutations match the code\n", len(chosen))
		return nil
	}
	return apply(chosen, specs)
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
func apply(list []mutation, specs *builds) error {
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
				number := fmt.Sprintf("%d/%d", i+1, len(list))
				results[i] = try(list[i], specs, packages(proofs, list[i]), environment, number)
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
func try(m mutation, specs *builds, packages, environment []string, number string) error {
	began := time.Now()
	spec, err := failingSpec(m, specs, packages, environment)
	if err != nil {
		err, spec = fmt.Errorf("%s: %w", m, err), "no spec"
	}
	fmt.Printf("%s %s\n      fails: %s (%.0f s)\n", number, m, spec, time.Since(began).Seconds())
	return err
}

// packages returns the packages with specs of the rule. That of the mutated file comes first,
// because it is the fastest.
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

// failingSpec returns the package and the name of the first spec of the rule that fails, or
// errNoFailure.
func failingSpec(m mutation, specs *builds, packages, environment []string) (spec string, err error) {
	environment = append(environment[:len(environment):len(environment)], chosen+"="+m.id())
	for _, pkg := range packages {
		program, err := specs.of(pkg)
		if err != nil {
			return "", err
		}
		spec, err := firstFailure(program, m.rule, pkg, environment)
		if err != nil || spec != "" {
			return pkg + ": " + spec, err
		}
	}
	return "", errNoFailure
}

// failedSpec is Ginkgo's line for a failed spec. A suite can fail for other reasons, which prove
// nothing.
var failedSpec = regexp.MustCompile(`(?m)^\s*\[(?:FAIL|PANICKED!|TIMEDOUT)\] .*`)

// firstFailure runs the specs of one rule in a package and returns Ginkgo's line for the first that
// fails, "" if none does. A run without a result is an error. A spec that hangs fails before the
// whole program times out.
func firstFailure(program, rule, pkg string, environment []string) (string, error) {
	test := exec.Command(program, "-test.run=^Test", "-test.timeout=3m", "-ginkgo.fail-fast", "-ginkgo.no-color",
		"-ginkgo.timeout=2m", "-ginkgo.label-filter="+rule+" && !soak")
	test.Dir, test.Env = pkg, append(append(os.Environ(), environment...), "SPECS_PROCESSES=1")
	output, err := test.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case !errors.As(err, &exit):
		return "", fmt.Errorf("running the specs: %w", err)
	}
	if line := failedSpec.Find(output); line != nil {
		return strings.TrimSpace(string(line)), nil
	}
	return "", fmt.Errorf("the program of %s failed without a failed spec:\n%s", pkg, output)
}

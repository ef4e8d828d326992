// Command mutations breaks one line of the product at a time, as mutations.tsv lists them, and sees that the specs of the rule
// that is broken go red. The files themselves stay as they are: Go builds with the broken one in their place. Run it from the
// module's root:
//
//	mutations               all
//	mutations D16 G8        those of two rules
//	mutations -in FILE ...  those of changed files
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
	flag.Var(&files, "in", "break lines of this `file` only; may be repeated")
	flag.Parse()
	if err := run(selection{rules: flag.Args(), files: files}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fileList is a flag that may be repeated.
type fileList []string

func (l *fileList) String() string { return strings.Join(*l, " ") }

// Set implements flag.Value.
func (l *fileList) Set(value string) error { *l = append(*l, value); return nil }

// atOnce is how many mutations are tried at the same time. A build links on one processor, and specs wait.
const atOnce = 3

// run reports every mutation; its error names those that nobody noticed.
func run(wanted selection) error {
	list, err := mutations(wanted)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		fmt.Println("there is nothing to mutate in what was chosen")
		return nil
	}
	proofs, err := matrix.Read(".")
	if err != nil {
		return fmt.Errorf("reading the matrix: %w", err)
	}
	verdicts := make([]error, len(list))
	next := make(chan int)
	var workers errgroup.Group
	for range atOnce {
		environment, stop, err := engines.Share() // each worker has its own servers, because specs change their settings
		if err != nil {
			return err
		}
		workers.Go(func() error {
			for i := range next {
				verdicts[i] = try(list[i], proofs, environment, fmt.Sprintf("%d/%d", i+1, len(list)))
			}
			return stop()
		})
	}
	for i := range list {
		next <- i
	}
	close(next)
	err = workers.Wait()
	survivors := slices.DeleteFunc(verdicts, func(err error) bool { return err == nil })
	fmt.Printf("%d of %d mutations were noticed\n", len(list)-len(survivors), len(list))
	return errors.Join(append(survivors, err)...)
}

// try reports one mutation.
func try(m mutation, proofs *matrix.Matrix, environment []string, number string) error {
	began := time.Now()
	by, err := noticed(m, packages(proofs, m), environment)
	if err != nil {
		err, by = fmt.Errorf("%s: %w", m, err), "no spec"
	}
	fmt.Printf("%s %s\n      noticed by %s (%.0f s)\n", number, m, by, time.Since(began).Seconds())
	return err
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
func noticed(m mutation, packages, environment []string) (by string, err error) {
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
		red, err := goesRed(overlay, m.rule, pack, environment)
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

// failedSpec is Ginkgo's line for a spec that failed. A suite can fail for other reasons, which prove nothing.
var failedSpec = regexp.MustCompile(`(?m)^\s*(\x1b\[[\d;]*m)*\[(FAIL|PANICKED!|TIMEDOUT)\]`)

// goesRed runs the specs of one rule. What does not build, or has no result, proves nothing and is an error.
func goesRed(overlay, rule, pack string, environment []string) (bool, error) {
	test := exec.Command("go", "test", "-vet=off", "-count=1", "-run=^Test", "-timeout=3m", "-overlay="+overlay, pack,
		"-ginkgo.fail-fast", "-ginkgo.timeout=2m", "-ginkgo.label-filter="+rule+" && !soak") // a spec that hangs is red before go test gives up
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
	return false, fmt.Errorf("go test neither passed nor failed a spec:\n%s", output.Bytes())
}

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// chosen is the environment variable with the mutation of a run.
const chosen = "MUTATION"

// switchFile is added to each package with a mutation.
const switchFile = `package %s

import "os"

var chosenMutation = os.Getenv(%q)
`

// id is the value of chosen for the mutation.
func (m mutation) id() string { return strconv.Itoa(m.line) }

// branch is code for the beginning of the function: its mutated body, for the runs that choose it.
// The line comments make the compiler name the row, and the original lines after it.
func (m mutation) branch() string {
	end := "\n"
	if !m.returns {
		end = "\nreturn\n"
	}
	line := strings.Count(m.file.text[:m.start], "\n") + 1
	return fmt.Sprintf(" if chosenMutation == %q { /*line row-%s-of-mutations.tsv:1:1*/%s%s}; /*line %s:%d:1*/",
		m.id(), m.id(), m.body(), end, path.Base(m.file.path), line)
}

// withBranches returns the text of a file with mutations.
func withBranches(mutations []mutation) string {
	var text strings.Builder
	slices.SortStableFunc(mutations, func(a, b mutation) int { return cmp.Compare(a.start, b.start) })
	written, original := 0, mutations[0].file.text
	for _, m := range mutations {
		text.WriteString(original[written:m.start] + m.branch())
		written = m.start
	}
	return text.String() + original[written:]
}

// builds are the programs with the specs of each package, and with all mutations.
type builds struct {
	folder  string
	overlay string // the file for "go test -overlay"

	mu       sync.Mutex
	programs map[string]func() (string, error)
}

func newBuilds(list []mutation) (*builds, error) {
	folder, err := os.MkdirTemp("", "mutations")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	b := &builds{
		folder:   folder,
		overlay:  filepath.Join(folder, "overlay.json"),
		programs: map[string]func() (string, error){},
	}
	return b, b.writeOverlay(list)
}

// writeOverlay writes the files with mutations, and for each of their packages a switch.
func (b *builds) writeOverlay(list []mutation) error {
	texts, byFile := map[string]string{}, map[*file][]mutation{}
	for _, m := range list {
		byFile[m.file] = append(byFile[m.file], m)
	}
	for in, mutations := range byFile {
		texts[in.path] = withBranches(mutations)
		texts[path.Join(path.Dir(in.path), "chosen_mutation.go")] = fmt.Sprintf(switchFile, in.packageName, chosen)
	}
	replace := map[string]string{}
	for original, text := range texts {
		name := filepath.Join(b.folder, strings.ReplaceAll(original, "/", "-"))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return fmt.Errorf("writing the mutations: %w", err)
		}
		absolute, err := filepath.Abs(original)
		if err != nil {
			return fmt.Errorf("finding the original: %w", err)
		}
		replace[absolute] = name
	}
	content, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return fmt.Errorf("encoding the overlay: %w", err)
	}
	if err := os.WriteFile(b.overlay, content, 0o600); err != nil {
		return fmt.Errorf("writing the overlay: %w", err)
	}
	return nil
}

// of returns the program with the specs of a package. The first call builds it.
func (b *builds) of(pkg string) (string, error) {
	b.mu.Lock()
	program, known := b.programs[pkg]
	if !known {
		program = sync.OnceValues(func() (string, error) { return b.build(pkg) })
		b.programs[pkg] = program
	}
	b.mu.Unlock()
	return program()
}

// compile builds the module, because one row that does not compile fails the specs of many others.
func (b *builds) compile() error {
	if output, err := exec.Command("go", "build", "-overlay="+b.overlay, "./...").CombinedOutput(); err != nil {
		return fmt.Errorf("building the module with the mutations: %w\n%s", err, output)
	}
	return nil
}

func (b *builds) build(pkg string) (string, error) {
	name := filepath.Join(b.folder, strings.ReplaceAll(strings.TrimPrefix(pkg, "./"), "/", "-")+".test")
	output, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay="+b.overlay, "-o="+name, pkg).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the specs of %s with the mutations: %w\n%s", pkg, err, output)
	}
	return name, nil
}

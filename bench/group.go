package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

const storesPackage = "github.com/pasteport/pasteport/adapters/persistence"

// The output of the store's benchmark, which measures group commit and one transaction per grant.
// Only the store can switch group commit off.
var (
	shared = regexp.MustCompile(`([\d.]+) shared-ns/grant`)
	single = regexp.MustCompile(`([\d.]+) alone-ns/grant`)
)

// groupCommit measures how many grants per second the writers store with and without group commit.
func groupCommit(writers int) func(*bench, line, []string) (map[string]sample, error) {
	return func(b *bench, _ line, _ []string) (map[string]sample, error) {
		said, err := b.benchmarkStore("GroupCommit/^" + strconv.Itoa(writers) + "$")
		if err != nil {
			return nil, err
		}
		round := map[string]sample{}
		for server, pattern := range map[string]*regexp.Regexp{ourStore: shared, storeAlone: single} {
			found := pattern.FindSubmatch(said)
			if found == nil {
				return nil, fmt.Errorf("no time for %s in %s", server, said)
			}
			each, err := strconv.ParseFloat(string(found[1]), 64)
			if err != nil {
				return nil, err
			}
			round[server] = sample{rate: float64(time.Second) / each}
		}
		return round, nil
	}
}

// benchmarkStore runs a benchmark of the store and returns its output.
func (b *bench) benchmarkStore(name string) ([]byte, error) {
	program := b.program("persistence.test")
	if _, err := os.Stat(program); err != nil {
		if said, err := exec.Command("go", "test", "-c", "-o", program, storesPackage).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building the benchmarks of the store: %w: %s", err, said)
		}
	}
	command := exec.Command(program, "-test.run", "^$", "-test.bench", name, "-test.benchtime", b.length.String(),
		"-test.cpu", "1")
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, os.Stderr
	err := on(b.serverCPU, command.Start)
	if err == nil {
		err = command.Wait()
	}
	return said.Bytes(), err
}

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

// The benchmarks of the store by which a lone writer is compared, with the group and with a transaction that only the store itself can have
// without it.
var loneWriters = map[string]string{ourStore: "^one_writer$", storeAlone: "^one_writer,_without_the_group$"}

const storesPackage = "github.com/pasteport/pasteport/adapters/persistence"

var perOperation = regexp.MustCompile(`([\d.]+) ns/op`)

// loneWriter is how many grants a second one writer keeps.
func loneWriter(b *bench, _ line, name string) (sample, error) {
	program := b.program("persistence.test")
	if _, err := os.Stat(program); err != nil {
		if said, err := exec.Command("go", "test", "-c", "-o", program, storesPackage).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building the benchmarks of the store: %w: %s", err, said)
		}
	}
	command := exec.Command(program, "-test.run", "^$", "-test.bench", "AddGrant/"+loneWriters[name], "-test.benchtime", b.length.String(), "-test.cpu", "1")
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, os.Stderr
	err := on(b.serverCPU, command.Start)
	if err == nil {
		err = command.Wait()
	}
	if err != nil {
		return nil, err
	}
	found := perOperation.FindSubmatch(out.Bytes())
	if found == nil {
		return nil, fmt.Errorf("there is no time in %s", out.Bytes())
	}
	each, err := strconv.ParseFloat(string(found[1]), 64)
	return sample{rate: float64(time.Second) / each}, err
}

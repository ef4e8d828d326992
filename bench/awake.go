package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// keepAwake keeps the CPU of the load from going to sleep. On a virtual computer whoever wakes a CPU pays more for that than for an answer,
// and a server pays it the more often the slower it is.
func (b *bench) keepAwake() (stop func() error, err error) {
	if b.serverCPU < 0 {
		return func() error { return nil }, nil
	}
	command := exec.Command(b.program("awake")) // where this process is
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("keeping the CPU of the load awake: %w", err)
	}
	return func() error { return errors.Join(in.Close(), command.Wait()) }, nil
}

//go:build linux || darwin

package process

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// The names under which this executable is a supervisor, and becomes the program.
const (
	supervisorName = "pasteport-supervisor"
	starterName    = "pasteport-starter"
)

// start starts the supervisor, which starts the program.
func (p *Process) start(program Program) (wait func() error, err error) {
	order, err := json.Marshal(program)
	if err != nil {
		return nil, err
	}
	self, err := executable()
	if err != nil {
		return nil, fmt.Errorf("finding this executable: %w", err)
	}
	streams, err := p.openPipes()
	if err != nil {
		return nil, err
	}
	defer streams.given()
	lifeline, held, err := os.Pipe()
	if err != nil {
		streams.close()
		return nil, err
	}
	defer lifeline.Close()
	pid, known, err := os.Pipe()
	if err != nil {
		streams.close()
		_ = held.Close()
		return nil, err
	}
	defer known.Close()
	supervisor := &exec.Cmd{
		Path: self,
		Args: []string{supervisorName},
		Dir:  "/",
		// in the environment of this process, which its init functions may need
		ExtraFiles:  []*os.File{lifeline, known},
		Stdin:       streams.theirs[0],
		Stdout:      streams.theirs[1],
		Stderr:      streams.theirs[2],
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true}, // not in the group that a terminal interrupts
	}
	if err := supervisor.Start(); err != nil {
		streams.close()
		_, _ = held.Close(), pid.Close()
		return nil, err
	}
	p.end = func() { _ = held.Close() }
	go func() { _, _ = held.Write(append(order, '\n')) }() // fails only if the supervisor has ended
	return func() error {
		defer pid.Close()
		err := supervisor.Wait()
		if !supervisor.ProcessState.Exited() {
			killGroup(pid)
		}
		return endOf(err)
	}, nil
}

// killGroup kills what is left of the group of a program whose supervisor was killed,
// perhaps by the program itself.
func killGroup(pid io.Reader) {
	var group int
	if _, err := fmt.Fscan(pid, &group); err == nil && group > 1 {
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
}

// signalled is what the exit status of a supervisor adds to the number of the signal that ended its
// program, as in a shell.
const signalled = 128

// failedStart is the exit status of a supervisor that could not start its program.
const failedStart = 127

// endOf describes the end of a program by the error of its supervisor.
func endOf(err error) error {
	exit, ok := err.(*exec.ExitError) //nolint:errorlint // exec returns the value itself
	switch {
	case !ok:
		return err
	case exit.ExitCode() > signalled:
		return fmt.Errorf("ended by signal %d (%s)", exit.ExitCode()-signalled,
			syscall.Signal(exit.ExitCode()-signalled))
	case exit.ExitCode() >= 0:
		return fmt.Errorf("exit status %d", exit.ExitCode())
	}
	return exit
}

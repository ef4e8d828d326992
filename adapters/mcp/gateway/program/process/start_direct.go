//go:build !linux && !darwin

package process

import "os/exec"

// start starts the program itself: this system has no process groups that a supervisor could end.
func (p *Process) start(program Program) (wait func() error, err error) {
	streams, err := p.openPipes()
	if err != nil {
		return nil, err
	}
	defer streams.given()
	child := &exec.Cmd{
		Path:   program.Path,
		Args:   append([]string{program.Path}, program.Args...),
		Dir:    program.Dir,
		Env:    append([]string{}, program.Env...),
		Stdin:  streams.theirs[0],
		Stdout: streams.theirs[1],
		Stderr: streams.theirs[2],
	}
	if err := child.Start(); err != nil {
		streams.close()
		return nil, err
	}
	p.end = func() { _ = child.Process.Kill() }
	return child.Wait, nil
}

// Package process runs a program as a child of this process.
//
// On Linux and macOS the program has its own process group, which ends with it: descendants
// that leave the group survive. On Linux the program also has limits, and ends when this process is
// killed, which its descendants may survive. On other systems only the program itself is ended.
package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Program is a program and how it is run.
type Program struct {
	Path    string        // absolute
	Args    []string      // without the name
	Dir     string        // absolute
	Env     []string      // the whole environment, each as NAME=value
	Memory  int64         // bytes of data of each process; 0 for no limit. Linux only.
	CPUTime time.Duration // of each process, in whole seconds; 0 for no limit. Linux only.
}

const (
	// grace is how long a program may take to end itself after SIGTERM, and how long its end waits
	// for that of stderr, which a descendant may hold open.
	grace = 250 * time.Millisecond
	// lineWindow is how much of a line of stderr is kept.
	lineWindow = 64 << 10
)

// Process is a running program.
type Process struct {
	command *exec.Cmd
	stdin   *os.File
	stdout  *os.File
	end     context.CancelFunc
	done    chan struct{}
	err     error
}

// Start starts the program. It calls stderr with the beginning of each line of its standard error,
// one call at a time.
func Start(p Program, stderr func(line string)) (*Process, error) {
	stdout, output, err := os.Pipe() // not StdoutPipe, because Wait would close it before it is read
	if err != nil {
		return nil, fmt.Errorf("starting a program: %w", err)
	}
	defer output.Close()
	ctx, end := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, p.Path, p.Args...) //nolint:gosec // the operator names the program
	command.Dir, command.SysProcAttr = p.Dir, attributes()
	command.Env = append([]string{}, p.Env...) // not nil, which would be the environment of this process
	command.WaitDelay = grace
	command.Cancel = func() error {
		terminate(command.Process.Pid)
		return os.ErrProcessDone // so that Wait returns how it ends
	}
	lines, log := io.Pipe()
	command.Stdout, command.Stderr = output, log
	child := &Process{
		command: command,
		stdout:  stdout,
		end:     end,
		done:    make(chan struct{}),
	}
	started := make(chan error)
	starts() <- func() { started <- child.start(p, stderr) }
	if err := <-started; err != nil {
		end()
		_ = stdout.Close()
		return nil, fmt.Errorf("starting a program: %w", err)
	}
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		readLines(lines, stderr)
	}()
	go func() {
		defer close(child.done)
		defer end()
		if err := command.Wait(); !errors.Is(err, exec.ErrWaitDelay) {
			child.err = err
		}
		endGroup(command.Process.Pid, time.Now().Add(time.Second)) // at most a second for the processes that it started
		_ = log.Close()
		<-logged
	}()
	return child, nil
}

// starts runs functions on a thread that never ends, because Linux ends the programs of a thread
// with it.
var starts = sync.OnceValue(func() chan<- func() {
	functions := make(chan func())
	go func() {
		runtime.LockOSThread()
		for run := range functions {
			run()
		}
	}()
	return functions
})

func (p *Process) start(program Program, stderr func(line string)) error {
	closeFilesOnExec()
	stdin, err := p.command.StdinPipe()
	if err != nil {
		return err
	}
	p.stdin, _ = stdin.(*os.File) // whose writes can have a deadline
	if err := p.command.Start(); err != nil {
		return err
	}
	if err := limit(p.command.Process.Pid, program); err != nil {
		stderr("a limit cannot be set: " + strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}

// Read reads from the standard output of the program.
func (p *Process) Read(b []byte) (int, error) { return p.stdout.Read(b) }

// Write writes to the standard input of the program. It fails after a minute if the program does
// not read.
func (p *Process) Write(b []byte) (int, error) {
	_ = p.stdin.SetWriteDeadline(time.Now().Add(time.Minute))
	return p.stdin.Write(b)
}

// End begins to end the program: with the end of its input and SIGTERM, and SIGKILL after a short
// grace. It may be repeated.
func (p *Process) End() {
	_ = p.stdin.Close()
	p.end()
}

// Done is closed when the program and its group have ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the program has ended, nil for exit status 0. Call it after Done is closed.
func (p *Process) Err() error { return p.err }

// Close closes the standard output. Call it after the last Read.
func (p *Process) Close() error { return p.stdout.Close() }

// readLines calls line with the beginning of each line until the end.
func readLines(from io.Reader, line func(text string)) {
	reader := bufio.NewReaderSize(from, lineWindow)
	rest := false // of a line whose beginning was passed on
	for {
		text, err := reader.ReadSlice('\n')
		if !rest && len(text) > 0 {
			line(strings.TrimRight(string(text), "\r\n"))
		}
		if rest = err == bufio.ErrBufferFull; err != nil && !rest { //nolint:errorlint // bufio returns the value itself
			return
		}
	}
}

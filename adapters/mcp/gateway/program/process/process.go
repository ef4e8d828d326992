// Package process runs a program as a child of this process.
//
// On Linux and macOS the program has its own process group, which ends with it: descendants
// that leave the group survive. On Linux the program also has limits, and ends when this process is
// killed, which its descendants may survive. On other systems only the program itself is ended.
package process

import (
	"bufio"
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
	// grace is how long a program may take to end itself after SIGTERM.
	grace = 250 * time.Millisecond
	// drainTime is how long the end of a program waits for its group and for the end of stderr,
	// which a descendant that could not be ended may hold open.
	drainTime = time.Second
	// writePatience is how long the program may take to read a message.
	writePatience = time.Minute
	// lineWindow is how much of a line of stderr is kept.
	lineWindow = 64 << 10
)

// Process is a running program.
type Process struct {
	command *exec.Cmd
	stdin   *os.File
	stdout  *os.File
	exited  chan struct{}
	done    chan struct{}
	err     error
	endOnce sync.Once
}

// Start starts the program. It calls stderr with the beginning of each line of its standard error,
// from one goroutine.
func Start(p Program, stderr func(line string)) (*Process, error) {
	var ends []*os.File // of the pipes: read, write
	for range 3 {
		read, write, err := os.Pipe()
		if err != nil {
			closeAll(ends...)
			return nil, fmt.Errorf("starting a program: %w", err)
		}
		ends = append(ends, read, write)
	}
	defer closeAll(ends[0], ends[3], ends[5])
	child := &Process{
		command: &exec.Cmd{
			Path:        p.Path,
			Args:        append([]string{p.Path}, p.Args...),
			Dir:         p.Dir,
			Env:         append([]string{}, p.Env...),
			Stdin:       ends[0],
			Stdout:      ends[3],
			Stderr:      ends[5],
			SysProcAttr: attributes(),
		},
		stdin:  ends[1],
		stdout: ends[2],
		exited: make(chan struct{}),
		done:   make(chan struct{}),
	}
	started := make(chan error)
	starts() <- func() { started <- child.start(p, stderr) }
	if err := <-started; err != nil {
		closeAll(ends[1], ends[2], ends[4])
		return nil, fmt.Errorf("starting a program: %w", err)
	}
	go child.watch(ends[4], stderr)
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
	keepFiles()
	if err := p.command.Start(); err != nil {
		return err
	}
	if err := limit(p.command.Process.Pid, program); err != nil {
		stderr("a limit cannot be set: " + strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}

// watch waits for the end of the program.
func (p *Process) watch(stderr *os.File, line func(text string)) {
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		readLines(stderr, line)
	}()
	p.err = p.command.Wait()
	close(p.exited)
	endGroup(p.command.Process.Pid, time.Now().Add(drainTime))
	select {
	case <-logged:
	case <-time.After(drainTime):
	}
	close(p.done)
	closeAll(p.stdin, stderr)
}

// Read reads from the standard output of the program.
func (p *Process) Read(b []byte) (int, error) { return p.stdout.Read(b) }

// Write writes to the standard input of the program. It fails after a minute if the program does
// not read.
func (p *Process) Write(b []byte) (int, error) {
	_ = p.stdin.SetWriteDeadline(time.Now().Add(writePatience))
	return p.stdin.Write(b)
}

// End begins to end the program: with the end of its input and SIGTERM, and SIGKILL after a short
// grace. It may be repeated.
func (p *Process) End() {
	p.endOnce.Do(func() {
		_ = p.stdin.Close()
		p.signal(terminate)
		time.AfterFunc(grace, func() { p.signal(kill) })
	})
}

// signal sends a signal to the group of the program, unless it has exited: then its number may be
// that of another process.
func (p *Process) signal(send func(pid int)) {
	select {
	case <-p.exited:
	default:
		send(p.command.Process.Pid)
	}
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

func closeAll(files ...*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
}

// Package process runs a program as a child that ends with this process, however this process ends.
//
// Start starts a Program. On Linux and macOS a supervisor, which is this executable again, stands
// between: it starts the program in a process group of its own, limits it, and ends it and its
// descendants when the pipe to this process closes, as it does when this process is killed. On
// Linux it also adopts descendants that have left the group. The supervisor starts this executable
// once more, which limits itself and becomes the program. On other systems the program is started
// directly, and only it is ended.
package process

import (
	"fmt"
	"io"
	"os"
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
	CPUTime time.Duration // of each process, in whole seconds; 0 for no limit. Linux and macOS only.
}

// grace is how long a program may take to end itself after SIGTERM.
const grace = 250 * time.Millisecond

// Process is a running program.
type Process struct {
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	end    func()
	once   sync.Once
	done   chan struct{}
	err    error
}

// Start starts the program. It calls stderr with the beginning of each line of its standard error,
// from one goroutine.
func Start(p Program, stderr func(line string)) (*Process, error) {
	child := &Process{done: make(chan struct{})}
	wait, err := child.start(p)
	if err != nil {
		return nil, fmt.Errorf("starting a program: %w", err)
	}
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		readLines(child.stderr, stderr)
	}()
	go func() {
		child.err = wait()
		select { // a descendant that could not be ended may hold stderr open
		case <-logged:
		case <-time.After(time.Second):
		}
		close(child.done)
		child.End()
		_ = child.stderr.Close()
	}()
	return child, nil
}

// Read reads from the standard output of the program.
func (p *Process) Read(b []byte) (int, error) { return p.stdout.Read(b) }

// writePatience is how long the program may take to read a message.
const writePatience = time.Minute

// Write writes to the standard input of the program. It fails after a minute if the program does
// not read.
func (p *Process) Write(b []byte) (int, error) {
	_ = p.stdin.SetWriteDeadline(time.Now().Add(writePatience))
	return p.stdin.Write(b)
}

// End begins to end the program: with the end of its input and SIGTERM, and SIGKILL after a short
// grace. It may be repeated.
func (p *Process) End() {
	p.once.Do(func() {
		_ = p.stdin.Close()
		p.end()
	})
}

// Done is closed when the program and its descendants have ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the program has ended, nil for exit status 0. Call it after Done is closed.
func (p *Process) Err() error { return p.err }

// Close closes the standard output. Call it after the last Read.
func (p *Process) Close() error { return p.stdout.Close() }

// pipes are the three standard streams of a child.
type pipes struct {
	theirs []*os.File
	ours   []*os.File
}

func (p *Process) openPipes() (pipes, error) {
	var all pipes
	for i, ours := range []**os.File{&p.stdin, &p.stdout, &p.stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			all.close()
			return pipes{}, err
		}
		theirs := r
		if *ours = w; i > 0 {
			theirs, *ours = w, r
		}
		all.theirs, all.ours = append(all.theirs, theirs), append(all.ours, *ours)
	}
	return all, nil
}

// given closes the ends that the child has.
func (p pipes) given() { closeAll(p.theirs) }

func (p pipes) close() {
	closeAll(p.theirs)
	closeAll(p.ours)
}

func closeAll[C io.Closer](files []C) {
	for _, file := range files {
		_ = file.Close()
	}
}

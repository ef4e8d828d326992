//go:build linux || darwin

package process

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// An init, because a host that embeds the gateway has a main function of its own.
func init() {
	switch {
	case len(os.Args) != 1:
	case os.Args[0] == supervisorName:
		os.Exit(supervise())
	case os.Args[0] == starterName:
		os.Exit(become())
	}
}

const (
	lifelineFile = 3 // the starter reads its order from it too
	pidFile      = 4 // gets the process ID of the program
)

// readOrder returns the first line of the lifeline.
func readOrder() (program Program, order []byte, lifeline io.Reader, err error) {
	unix.CloseOnExec(lifelineFile)
	reader := bufio.NewReader(os.NewFile(lifelineFile, "lifeline"))
	if order, err = reader.ReadBytes('\n'); err == nil {
		err = json.Unmarshal(order, &program)
	}
	return program, order, reader, err
}

// become limits this process and then replaces it by the program, so that neither the program nor
// what it starts can run without the limits. It runs on the first thread, as an init function does:
// only that one has the signal of death.
func become() int {
	program, _, _, err := readOrder()
	if err != nil {
		return failedStart
	}
	report(errors.Join(limitCPU(program), limitMemory(0, program)))
	arguments := append([]string{program.Path}, program.Args...)
	err = syscall.Exec(program.Path, arguments, program.Env) //nolint:gosec // the operator has named the program
	fmt.Fprintln(os.Stderr, "the program cannot be started:", err)
	return failedStart
}

// supervise runs the program in the first line of the lifeline until the program or the lifeline
// ends, and returns its exit status.
func supervise() int {
	runtime.LockOSThread() // the program gets its signal of death when the thread that started it ends
	program, order, lifeline, err := readOrder()
	if err != nil {
		return failedStart
	}
	ending := make(chan os.Signal, 1)
	signal.Notify(ending, unix.SIGTERM, unix.SIGINT, unix.SIGHUP) // not Ignore, which the program would inherit
	report(prepare())
	pid, err := startWith(order, program.Dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the program cannot be started:", err)
		return failedStart
	}
	known := os.NewFile(pidFile, "pid")
	_, _ = fmt.Fprintln(known, pid)
	_ = known.Close()
	for _, file := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		_ = file.Close()
	}
	go func() {
		_, _ = io.Copy(io.Discard, lifeline)
		ending <- unix.SIGTERM
	}()
	return (&family{pid: pid, exited: make(chan int, 1), gone: make(chan struct{})}).run(ending)
}

// startWith starts a starter, which becomes the program of the order.
func startWith(order []byte, dir string) (pid int, err error) {
	self, err := executable()
	if err != nil {
		return 0, err
	}
	orders, ours, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer orders.Close()
	starter := &exec.Cmd{
		Path:        self,
		Args:        []string{starterName},
		Dir:         dir,
		ExtraFiles:  []*os.File{orders},
		Stdin:       os.Stdin,
		Stdout:      os.Stdout,
		Stderr:      os.Stderr,
		SysProcAttr: ownGroup(),
	}
	if err := starter.Start(); err != nil {
		_ = ours.Close()
		return 0, err
	}
	go func() {
		_, _ = ours.Write(order) // fails only if the starter has ended
		_ = ours.Close()
	}()
	return starter.Process.Pid, nil
}

// family is the program and its descendants.
type family struct {
	pid    int
	exited chan int      // exit status of the program
	gone   chan struct{} // closed when there is no descendant left
}

func (f *family) run(ending <-chan os.Signal) (status int) {
	go f.reap()
	select {
	case status = <-f.exited:
	case <-ending:
		_ = unix.Kill(-f.pid, unix.SIGTERM)
		select {
		case status = <-f.exited:
		case <-time.After(grace):
			status = signalled + int(unix.SIGKILL)
		}
	}
	for {
		_ = unix.Kill(-f.pid, unix.SIGKILL)
		killAdopted()
		select {
		case <-f.gone:
			return status
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// reap waits for all children, also for the descendants that the supervisor has adopted.
func (f *family) reap() {
	defer close(f.gone)
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return
		case pid == f.pid && status.Signaled():
			f.exited <- signalled + int(status.Signal())
		case pid == f.pid:
			f.exited <- status.ExitStatus()
		}
	}
}

// limitCPU limits this process and those that it starts.
func limitCPU(program Program) error {
	noCore := unix.Rlimit{} // a core file would have the key
	mistakes := []error{failed("turning off core files", unix.Setrlimit(unix.RLIMIT_CORE, &noCore))}
	if seconds := uint64(max(0, program.CPUTime) / time.Second); seconds > 0 {
		mistakes = append(mistakes,
			failed("limiting the processor time",
				unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: seconds})))
	}
	return errors.Join(mistakes...)
}

// failed returns what failed, nil without an error.
func failed(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s of the program: %w", what, err)
	}
	return nil
}

// report writes an error of a limit to the standard error, which Start passes on line by line.
func report(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "a limit cannot be set:", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

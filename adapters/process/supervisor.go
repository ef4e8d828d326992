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
	if len(os.Args) == 1 && os.Args[0] == supervisorName {
		os.Exit(supervise())
	}
}

const lifelineFile = 3

// supervise runs the program in the first line of the lifeline until the program or the lifeline ends, and returns its exit status.
func supervise() int {
	runtime.LockOSThread() // the program gets its signal of death when the thread that started it ends
	unix.CloseOnExec(lifelineFile)
	lifeline := bufio.NewReader(os.NewFile(lifelineFile, "lifeline"))
	order, err := lifeline.ReadBytes('\n')
	var program Program
	if err != nil || json.Unmarshal(order, &program) != nil {
		return failedStart
	}
	ending := make(chan os.Signal, 1)
	signal.Notify(ending, unix.SIGTERM, unix.SIGINT, unix.SIGHUP) // not Ignore, which the program would inherit
	child := &exec.Cmd{
		Path: program.Path, Args: append([]string{program.Path}, program.Args...), Dir: program.Dir, Env: program.Env,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, SysProcAttr: ownGroup(),
	}
	if child.Env == nil {
		child.Env = []string{}
	}
	report(prepare(program))
	if err := child.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "the program cannot be started:", err)
		return failedStart
	}
	report(limit(child.Process.Pid, program))
	for _, file := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		_ = file.Close()
	}
	go func() {
		_, _ = io.Copy(io.Discard, lifeline)
		ending <- unix.SIGTERM
	}()
	return (&family{pid: child.Process.Pid, exited: make(chan int, 1), gone: make(chan struct{})}).run(ending)
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
		mistakes = append(mistakes, failed("limiting the processor time", unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: seconds})))
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

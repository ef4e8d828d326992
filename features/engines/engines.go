// Package engines runs PostgreSQL and MariaDB servers for specs. Shared returns the Endpoint of the
// server that all processes of a run use, which Share starts on demand; Own starts a Server that a
// spec may stop.
package engines

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// timeout is long, because a server that ends flushes its data to a disk that may be busy.
const timeout = 3 * time.Minute

// Endpoint is the address of a running database server, with the functions of its engine.
type Endpoint struct {
	port  int
	url   string // with %s for the name of a database
	exec  func(ctx context.Context, at *Endpoint, statement string) error
	hold  func(ctx context.Context, url string, statements []string) (func() error, error)
	force string // the clause that drops a database with open connections
}

// Database creates an empty database and returns its URL.
func (e *Endpoint) Database(ctx context.Context) (string, error) {
	name := "specs_" + strings.ToLower(crand.Text())
	if err := e.exec(ctx, e, "CREATE DATABASE "+name); err != nil {
		return "", fmt.Errorf("creating a database: %w", err)
	}
	return fmt.Sprintf(e.url, name), nil
}

// Drop drops the database of that URL.
func (e *Endpoint) Drop(ctx context.Context, url string) error {
	return e.exec(ctx, e, "DROP DATABASE "+e.nameIn(url)+e.force)
}

// nameIn returns the name of the database in one of the endpoint's URLs.
func (e *Endpoint) nameIn(url string) string {
	before, after, _ := strings.Cut(e.url, "%s")
	return strings.TrimSuffix(strings.TrimPrefix(url, before), after)
}

// Hold runs statements in a transaction on the database of that URL, and keeps their locks until
// release.
func (e *Endpoint) Hold(ctx context.Context, url string, statements ...string) (release func() error, err error) {
	return e.hold(ctx, url, statements)
}

// Exec runs a statement as an administrator.
func (e *Endpoint) Exec(ctx context.Context, statement string) error {
	return e.exec(ctx, e, statement)
}

// Server is a database server that this process started. Stop and Start restart it with its data.
type Server struct {
	*Endpoint
	program string
	flags   []string
	folder  string
	owner   *syscall.Credential
	process *exec.Cmd
	quick   os.Signal // stops it cleanly without waiting for clients
	exited  chan struct{}
}

// Start starts the server, and returns when it answers.
func (s *Server) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := s.launch(); err != nil {
		return err
	}
	for s.Exec(ctx, "SELECT 1") != nil {
		select {
		case <-s.exited: // a killed predecessor may hold the port or a lock for a moment
			if err := s.launch(); err != nil {
				return err
			}
		case <-ctx.Done():
			output, _ := os.ReadFile(filepath.Join(s.folder, "log"))
			return fmt.Errorf("waiting for %s: %w: %s", s.program, ctx.Err(), output[max(0, len(output)-2000):])
		case <-time.After(pause):
		}
	}
	return nil
}

const pause = 50 * time.Millisecond

func (s *Server) launch() error {
	log, err := os.OpenFile(filepath.Join(s.folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.process = exec.Command(s.program, s.flags...)
	s.process.Dir, s.process.Stdout, s.process.Stderr = s.folder, log, log
	s.process.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner, Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		return err
	}
	s.exited = make(chan struct{})
	go func(process *exec.Cmd, exited chan struct{}) { _ = process.Wait(); close(exited) }(s.process, s.exited)
	return nil
}

// End sends the signal and waits until the server has ended.
func (s *Server) End(signal os.Signal) error {
	if s.process == nil {
		return nil
	}
	if err := s.process.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.exited:
		return nil
	case <-time.After(timeout):
		return errors.Join(fmt.Errorf("%s has not ended", s.program), s.process.Process.Kill())
	}
}

// Stop shuts the server down cleanly without waiting for its clients.
func (s *Server) Stop() error { return s.End(s.quick) }

// Pause stops the server in the middle of what it does, until Resume. Its connections stay open.
func (s *Server) Pause() error {
	if err := s.signalAll(syscall.SIGSTOP); err != nil {
		return err
	}
	for deadline := time.Now().Add(pauseLimit); time.Now().Before(deadline); {
		if s.isStopped() {
			return nil
		}
		runtime.Gosched()
	}
	return errors.New("the server has not stopped after SIGSTOP")
}

// pauseLimit is how long the threads of a server may take to stop.
const pauseLimit = 10 * time.Second

// isStopped reports whether every thread of the server's first process has stopped: until then it
// may answer.
func (s *Server) isStopped() bool {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.process.Process.Pid))
	return err == nil && !slices.ContainsFunc(tasks, func(task string) bool {
		stat, err := os.ReadFile(task)
		_, state, _ := strings.Cut(string(stat), ") ") // behind the name
		return err == nil && !strings.HasPrefix(state, "T")
	})
}

// Resume lets a paused server go on.
func (s *Server) Resume() error { return s.signalAll(syscall.SIGCONT) }

// signalAll signals the server first, which then starts no further process, and then its processes.
func (s *Server) signalAll(signal syscall.Signal) error {
	pid := s.process.Process.Pid
	if err := syscall.Kill(pid, signal); err != nil {
		return err
	}
	listed, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return err
	}
	for _, child := range strings.Fields(string(listed)) {
		id, err := strconv.Atoi(child)
		if err == nil {
			err = syscall.Kill(id, signal)
		}
		if err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// Close kills the server and removes its folder.
func (s *Server) Close() error { return errors.Join(s.End(syscall.SIGKILL), os.RemoveAll(s.folder)) }

// newServer creates a folder that the user of the server owns. Servers refuse to run as root.
func newServer(as string) (*Server, error) {
	folder, err := os.MkdirTemp("", "engine")
	if err != nil {
		return nil, err
	}
	s := &Server{folder: folder}
	if os.Geteuid() != 0 {
		return s, nil
	}
	known, err := user.Lookup(as)
	if err != nil {
		return nil, fmt.Errorf("finding the user of the database server: %w", err)
	}
	uid, uidErr := strconv.ParseUint(known.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(known.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, err
	}
	s.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return s, os.Chown(folder, int(uid), int(gid))
}

// run runs a program that prepares the server.
func (s *Server) run(program string, flags ...string) error {
	step := exec.Command(program, flags...)
	step.Dir, step.SysProcAttr = s.folder, &syscall.SysProcAttr{Credential: s.owner, Pdeathsig: syscall.SIGKILL}
	if output, err := step.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, output)
	}
	return nil
}

// find returns the first installed program of the names and patterns.
func find(patterns ...string) (string, error) {
	for _, pattern := range patterns {
		if path, err := exec.LookPath(pattern); err == nil {
			return path, nil
		}
		if paths, _ := filepath.Glob(pattern); len(paths) > 0 {
			return paths[len(paths)-1], nil
		}
	}
	return "", fmt.Errorf("%s is not installed", patterns[0])
}

// These ports are outside of the range for outgoing connections, so that a restarted server finds
// its port free.
const firstPort, ports = 15_000, 15_000

// FreePort returns a port that no program listens on.
func FreePort() (int, error) {
	for range 100 {
		port := firstPort + rand.N(ports)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, errors.New("no port is free")
}

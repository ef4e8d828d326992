// Package engines runs real database servers for specs, each on a port and in a folder of its own, so that one can be stopped while
// others go on.
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
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrMissing is for an engine whose programs are not installed.
var ErrMissing = errors.New("the database server is not installed")

// Required reports that a missing engine is a failure, as it is where everything is checked before it lands.
func Required() bool { return os.Getenv("ENGINES") == "required" }

// patience is long because a server that ends writes everything down first, which a busy disk makes it wait for.
const patience = 3 * time.Minute

// Endpoint is where a database server answers.
type Endpoint struct {
	port    int
	address string // as url, with %s for the name of a database
	ask     func(ctx context.Context, at *Endpoint, statement string) error
	hold    func(ctx context.Context, url string, statements []string) (func() error, error)
	force   string // the clause that drops a database although somebody is connected
}

// Database makes an empty database and returns its URL.
func (e *Endpoint) Database(ctx context.Context) (string, error) { return e.create(ctx, "") }

// Copy makes a database with the tables of another one of the server, and returns its URL. PostgreSQL can do that.
func (e *Endpoint) Copy(ctx context.Context, url string) (string, error) {
	return e.create(ctx, " TEMPLATE "+e.nameIn(url))
}

func (e *Endpoint) create(ctx context.Context, clause string) (string, error) {
	name := "specs_" + strings.ToLower(crand.Text())
	if err := e.ask(ctx, e, "CREATE DATABASE "+name+clause); err != nil {
		return "", fmt.Errorf("making a database: %w", err)
	}
	return fmt.Sprintf(e.address, name), nil
}

// Drop removes the database of that URL with everything in it.
func (e *Endpoint) Drop(ctx context.Context, url string) error {
	return e.ask(ctx, e, "DROP DATABASE "+e.nameIn(url)+e.force)
}

// nameIn returns the name of the database in one of the endpoint's URLs.
func (e *Endpoint) nameIn(url string) string {
	before, after, _ := strings.Cut(e.address, "%s")
	return strings.TrimSuffix(strings.TrimPrefix(url, before), after)
}

// Hold runs statements on a connection of an administrator's own to the database of that URL, and keeps what they have locked until
// release.
func (e *Endpoint) Hold(ctx context.Context, url string, statements ...string) (release func() error, err error) {
	return e.hold(ctx, url, statements)
}

// Ask runs a statement of an administrator.
func (e *Endpoint) Ask(ctx context.Context, statement string) error { return e.ask(ctx, e, statement) }

// Server is a database server that this process has started.
type Server struct {
	*Endpoint
	program string
	flags   []string
	folder  string
	owner   *syscall.Credential
	process *exec.Cmd
	quick   os.Signal // ends it at once and in good order
	exited  chan struct{}
}

// Start runs the server, and returns when it answers.
func (s *Server) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.launch(); err != nil {
		return err
	}
	for s.Ask(ctx, "SELECT 1") != nil {
		select {
		case <-s.exited: // what is left of one that was killed may be in the way for a moment
			if err := s.launch(); err != nil {
				return err
			}
		case <-ctx.Done():
			said, _ := os.ReadFile(filepath.Join(s.folder, "log"))
			return fmt.Errorf("waiting for %s: %w: %s", s.program, ctx.Err(), said[max(0, len(said)-2000):])
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

// End sends the signal and waits for the server's end.
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
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("%s has not ended", s.program), s.process.Process.Kill())
	}
}

// Stop ends the server as its operator would, without waiting for its clients.
func (s *Server) Stop() error { return s.End(s.quick) }

// Close ends the server and removes its folder.
func (s *Server) Close() error { return errors.Join(s.End(syscall.SIGKILL), os.RemoveAll(s.folder)) }

// newServer has a folder for the user that the server runs as.
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
		return nil, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	uid, uidErr := strconv.ParseUint(known.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(known.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, err
	}
	s.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return s, os.Chown(folder, int(uid), int(gid))
}

// run is a step of making a server.
func (s *Server) run(program string, flags ...string) error {
	step := exec.Command(program, flags...)
	step.Dir, step.SysProcAttr = s.folder, &syscall.SysProcAttr{Credential: s.owner, Pdeathsig: syscall.SIGKILL}
	if said, err := step.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, said)
	}
	return nil
}

// find is the first program of the patterns that there is.
func find(patterns ...string) (string, error) {
	for _, pattern := range patterns {
		if path, err := exec.LookPath(pattern); err == nil {
			return path, nil
		}
		if paths, _ := filepath.Glob(pattern); len(paths) > 0 {
			return paths[len(paths)-1], nil
		}
	}
	return "", fmt.Errorf("%w: %s", ErrMissing, patterns[0])
}

// Ports that the system gives to no connection on its own, so that a server which is started again finds its port free.
const firstPort, ports = 15_000, 15_000

// FreePort is one on which nobody listens.
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

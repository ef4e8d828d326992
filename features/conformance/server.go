package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// stopLimit is how long a stopped process may take before it is killed.
const stopLimit = 15 * time.Second

var servingLine = regexp.MustCompile(`^serving (\S+) on `)

// server is the binary under test, as `pasteport serve` on a port that the system chose.
type server struct {
	process *exec.Cmd
	issuer  string
	token   string // the demo site's, which the browser pastes
	log     bytes.Buffer
}

// startServer returns when the binary says that it serves. It trusts the metadata hosts that authority vouches for.
func startServer(ctx context.Context, binary, authority, dir string) (*server, error) {
	s := &server{token: rand.Text()}
	s.process = command(ctx, binary, "serve", "--dev", "--addr", "127.0.0.1:0", "--admin-addr", "off", "--data", filepath.Join(dir, "data"))
	s.process.Env = append(os.Environ(), "PASTEPORT_DEMO_TOKEN="+s.token, "SSL_CERT_FILE="+authority)
	s.process.Stderr = &s.log
	out, err := s.process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the server: %w", err)
	}
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("starting the server: %w", err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if found := servingLine.FindStringSubmatch(lines.Text()); found != nil {
			s.issuer = found[1]
			return s, nil
		}
	}
	return nil, fmt.Errorf("starting the server: %w\n%s", errors.Join(errors.New("it never said that it serves"), s.stop()), s.log.String())
}

// stop ends the server the way that an operator does, and wants it to leave with 0.
func (s *server) stop() error {
	kill := time.AfterFunc(stopLimit, func() { _ = s.process.Process.Kill() })
	defer kill.Stop()
	_ = s.process.Process.Signal(syscall.SIGTERM) // fails when the process has ended, and Wait tells
	if err := s.process.Wait(); err != nil {
		return fmt.Errorf("stopping the server: %w", err)
	}
	return nil
}

// command is a child that is asked to end when ctx does, and killed when it does not.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	child := exec.CommandContext(ctx, name, args...)
	child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) }
	child.WaitDelay = stopLimit
	return child
}

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

// stopLimit is the time between the stop signal and the kill.
const stopLimit = 15 * time.Second

var servingLine = regexp.MustCompile(`^serving (\S+) on `)

// server is the binary under test, running `pasteport serve` on a free port.
type server struct {
	process *exec.Cmd
	issuer  string
	token   string // the demo site's, which the browser pastes
	log     bytes.Buffer
}

// startServer returns when the binary serves. It trusts metadata hosts with certificates of the
// authority.
func startServer(ctx context.Context, binary, authority, dir string) (*server, error) {
	s := &server{token: rand.Text()}
	s.process = command(ctx, binary, "serve", "--dev", "--self-registration=off", "--addr", "127.0.0.1:0",
		"--admin-addr", "off", "--data", filepath.Join(dir, "data"))
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
	return nil, fmt.Errorf("starting the server: %w\n%s",
		errors.Join(errors.New("it did not report that it serves"), s.stop()), s.log.String())
}

// stop ends the server with SIGTERM and requires exit code 0.
func (s *server) stop() error {
	kill := time.AfterFunc(stopLimit, func() { _ = s.process.Process.Kill() })
	defer kill.Stop()
	_ = s.process.Process.Signal(syscall.SIGTERM) // fails if the process has ended, which Wait reports
	if err := s.process.Wait(); err != nil {
		return fmt.Errorf("stopping the server: %w", err)
	}
	return nil
}

// command returns a child process that gets SIGTERM when ctx ends, and is killed if it does not end
// then.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	child := exec.CommandContext(ctx, name, args...)
	child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) }
	child.WaitDelay = stopLimit
	return child
}

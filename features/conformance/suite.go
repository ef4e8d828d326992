package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// suite is the installed npm package, which acts as the client.
type suite struct {
	programs string // npm's folder of programs: the suite and Node
	results  string
	port     int // of its callback
}

func openSuite(folder, dir string) (*suite, error) {
	programs, err := filepath.Abs(filepath.Join(folder, "node_modules", ".bin"))
	if err != nil {
		return nil, fmt.Errorf("looking for the suite: %w", err)
	}
	if _, err := os.Stat(filepath.Join(programs, "conformance")); err != nil {
		return nil, fmt.Errorf("looking for the suite: %w: install it with npm ci --ignore-scripts --prefix %s",
			err, folder)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	return &suite{programs: programs, results: filepath.Join(dir, "results"), port: port}, nil
}

// freePort finds a port for the suite, which does not support port 0.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

func (s *suite) callback() string { return fmt.Sprintf("http://127.0.0.1:%d/callback", s.port) }

// command puts the pinned Node first, because the suite does not load on Node before 22. Node is
// pinned by platform, because npm's package "node" downloads it by an install script that ignores
// the lock file.
func (s *suite) command(ctx context.Context, args ...string) *exec.Cmd {
	child := command(ctx, filepath.Join(s.programs, "conformance"), args...)
	child.Env = append(os.Environ(), "PATH="+s.programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	return child
}

var listedScenario = regexp.MustCompile(`(?m)^\s*- (\S+) \[(\S+)\]$`)

// scenarios returns the suite's scenarios for authorization servers by spec version. Its "draft" is
// another name for the newest of these versions.
func (s *suite) scenarios(ctx context.Context) (map[string][]string, error) {
	list, err := s.command(ctx, "list", "--authorization").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("listing the suite's scenarios: %w\n%s", err, list)
	}
	byVersion := map[string][]string{}
	for _, line := range listedScenario.FindAllStringSubmatch(string(list), -1) {
		for version := range strings.SplitSeq(line[2], ",") {
			byVersion[version] = append(byVersion[version], line[1])
		}
	}
	if len(byVersion) == 0 {
		return nil, fmt.Errorf("listing the suite's scenarios: none in\n%s", list)
	}
	return byVersion, nil
}

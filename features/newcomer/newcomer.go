package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// newcomer is a new user with Go, a terminal and a browser, and the values they have read so far.
type newcomer struct {
	home, clone   string
	terminal      *terminal
	first, second *pane
	phone         *phone
	installed     time.Duration

	token, address, connections string // printed by the demo
	listing, tracing            string // commands that the demo suggests
	id                          string // of their own connection
}

// prepare runs before the clock starts: it makes a clean copy of the git index and downloads the
// modules.
func (n *newcomer) prepare(ctx context.Context) error {
	for _, program := range []string{"git", "tmux", "bash", "chromium"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is not on the PATH; .ci/run installs it", program)
		}
	}
	n.clone = filepath.Join(n.home, "pasteport")
	if err := errors.Join(os.RemoveAll(left), os.MkdirAll(left, 0o755)); err != nil {
		return err
	}
	if _, err := output(ctx, ".", "git", "-c", "safe.directory=*", "checkout-index", "--all",
		"--prefix="+n.clone+"/"); err != nil {
		return err
	}
	if _, err := output(ctx, n.clone, "go", "list", "-deps", "./bootstrap/cmd/pasteport"); err != nil {
		return err
	}
	caches, err := output(ctx, n.clone, "go", "env", "GOCACHE", "GOMODCACHE")
	if err != nil {
		return err
	}
	build, modules, _ := strings.Cut(caches, "\n")
	n.terminal = &terminal{socket: filepath.Join(n.home, "tmux"), environment: append(os.Environ(),
		"HOME="+n.home, "GOPATH=", "GOBIN=", "GOCACHE="+build, "GOMODCACHE="+modules,
		"CGO_ENABLED=0",              // a newcomer needs no C compiler
		"PASTEPORT_ADDR=127.0.0.1:0", // the default port may be in use
		"PASTEPORT_DATA=", "PASTEPORT_DEMO_TOKEN=", "LC_ALL=C.UTF-8", `PS1=[$?] newcomer$ `)}
	return nil
}

func output(ctx context.Context, folder, name string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = folder
	printed, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("%s %s: %w: %s", name, arguments[0], err, failed.Stderr)
	}
	return strings.TrimSpace(string(printed)), err
}

// leave saves the output of the terminals and ends all processes.
func (n *newcomer) leave() error { return errors.Join(n.phone.close(), n.terminal.close()) }

var tryIt = regexp.MustCompile("(?s)\n## Try it\n.*?\n```sh\n(.*?)\n```\n")

// advice returns the commands in README.md that install the program, and the one that starts the
// demo.
func (n *newcomer) advice() (install []string, demo string, err error) {
	text, err := os.ReadFile(filepath.Join(n.clone, "README.md"))
	if err != nil {
		return nil, "", err
	}
	found := tryIt.FindSubmatch(text)
	if found == nil {
		return nil, "", errors.New("README.md has no commands under \"Try it\"")
	}
	lines := strings.Split(string(found[1]), "\n")
	last := len(lines) - 1
	return lines[:last], lines[last], nil
}

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

const (
	glance   = 50 * time.Millisecond // interval of reading a window
	farewell = 10 * time.Second
	prompt   = `^(?:\^C)?\[(\d+)\] newcomer\$` // with the exit code of the last command
)

// terminal is a separate tmux server.
type terminal struct {
	socket      string
	environment []string
	panes       []*pane
}

// pane is one window of the terminal.
type pane struct {
	terminal *terminal
	name     string
	read     int // length of the text already read
}

func (t *terminal) tmux(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "tmux", append([]string{"-S", t.socket, "-f", os.DevNull}, arguments...)...)
	command.Env = t.environment
	shown, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("tmux %s: %w: %s", arguments[0], err, failed.Stderr)
	}
	return string(shown), err
}

// open opens a window with a shell whose prompt shows the exit code of the last command.
func (t *terminal) open(ctx context.Context, name, folder string) (*pane, error) {
	p := &pane{terminal: t, name: name}
	if _, err := t.tmux(ctx, "new-session", "-d", "-s", name, "-x", "100", "-y", "40", "-c", folder, "bash",
		"--noprofile", "--norc"); err != nil {
		return nil, err
	}
	t.panes = append(t.panes, p)
	_, err := p.ends(ctx)
	return p, err
}

// close saves the output of the windows and ends the server with all processes in it.
func (t *terminal) close() (err error) {
	if len(t.panes) == 0 {
		return nil
	}
	for _, p := range t.panes {
		text, unread := p.text(context.Background())
		err = errors.Join(err, unread, os.WriteFile(filepath.Join(left, p.name+".txt"), []byte(text+"\n"), 0o644))
	}
	return errors.Join(err, t.end())
}

// end exits the shell of every window until the server ends because it has no windows, and kills it
// after a timeout.
func (t *terminal) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	for {
		for _, p := range t.panes { // fails for a window that is closed
			_ = p.presses(ctx, "C-c")
			_ = p.types(ctx, "exit")
		}
		if _, err := t.tmux(ctx, "list-sessions"); err != nil && ctx.Err() == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			_, err := t.tmux(context.Background(), "kill-server")
			return errors.Join(fmt.Errorf("a process in the terminal did not end within %s", farewell), err)
		case <-time.After(glance):
		}
	}
}

// text returns the whole output of the window with wrapped lines joined.
func (p *pane) text(ctx context.Context) (string, error) {
	text, err := p.terminal.tmux(ctx, "capture-pane", "-p", "-J", "-S", "-", "-t", p.name)
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n"), err
}

func (p *pane) types(ctx context.Context, line string) error {
	if _, err := p.terminal.tmux(ctx, "send-keys", "-t", p.name, "-l", line); err != nil {
		return err
	}
	return p.presses(ctx, "Enter")
}

func (p *pane) presses(ctx context.Context, key string) error {
	_, err := p.terminal.tmux(ctx, "send-keys", "-t", p.name, key)
	return err
}

// sees waits for a match, returns its groups, and continues after it.
func (p *pane) sees(ctx context.Context, pattern string) (groups []string, err error) {
	wanted, unread := regexp.MustCompile("(?m)"+pattern), ""
	for ctx.Err() == nil {
		text, err := p.text(ctx)
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		unread = text[min(p.read, len(text)):]
		if end := wanted.FindStringIndex(unread); end != nil {
			p.read += end[1]
			return wanted.FindStringSubmatch(unread), nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(glance):
		}
	}
	return nil, fmt.Errorf("the terminal does not show %q (%w) but\n%s", pattern, context.Cause(ctx), unread)
}

// runs types a command, requires exit code 0, and returns its output.
func (p *pane) runs(ctx context.Context, line string) (printed string, err error) {
	if err := p.types(ctx, line); err != nil {
		return "", err
	}
	return p.ends(ctx)
}

// ends waits for the prompt and requires exit code 0 of the last command.
func (p *pane) ends(ctx context.Context) (printed string, err error) {
	before := p.read
	found, err := p.sees(ctx, prompt)
	if err != nil {
		return "", err
	}
	text, err := p.text(ctx)
	printed = text[min(before, len(text)):min(p.read, len(text))]
	if found[1] != "0" {
		err = errors.Join(fmt.Errorf("the command has ended with %s:\n%s", found[1], printed), err)
	}
	return printed, err
}

// asks repeats a command until its output matches all patterns in order, because the trace is
// written a moment after the events. It returns the groups of the last pattern.
func (p *pane) asks(ctx context.Context, line string, patterns ...string) (groups []string, err error) {
	missing, shown := "", ""
	for {
		printed, err := p.runs(ctx, line)
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		if err == nil {
			if groups, missing = inOrder(printed, patterns); missing == "" {
				return groups, nil
			}
			shown = printed
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("it does not print %q (%w) but\n%s", missing, context.Cause(ctx), shown)
		case <-time.After(glance):
		}
	}
}

// inOrder returns the groups of the last pattern, or the first pattern without a match after the
// previous ones.
func inOrder(text string, patterns []string) (groups []string, missing string) {
	for _, pattern := range patterns {
		wanted := regexp.MustCompile("(?m)" + pattern)
		if groups = wanted.FindStringSubmatch(text); groups == nil {
			return nil, pattern
		}
		text = text[wanted.FindStringIndex(text)[1]:]
	}
	return groups, ""
}

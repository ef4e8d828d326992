package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// runAll returns one outcome per spec version and scenario, in the order of the versions.
func (s *suite) runAll(ctx context.Context, server *server, clientID string) ([]outcome, error) {
	byVersion, err := s.scenarios(ctx)
	if err != nil {
		return nil, err
	}
	var outcomes []outcome
	for _, version := range slices.Sorted(maps.Keys(byVersion)) {
		if err := s.run(ctx, server, clientID, version); err != nil {
			return nil, fmt.Errorf("running the suite at %s: %w", version, err)
		}
		for _, scenario := range byVersion[version] {
			checks, err := readChecks(s.resultsOf(version), scenario)
			if err != nil {
				return nil, fmt.Errorf("reading the results of %s at %s: %w", scenario, version, err)
			}
			outcomes = append(outcomes, outcome{version, scenario, checks})
		}
	}
	return outcomes, nil
}

func (s *suite) resultsOf(version string) string { return filepath.Join(s.results, version) }

// run runs every scenario of one version and approves the suite's authorization requests.
func (s *suite) run(ctx context.Context, server *server, clientID, version string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	child := s.command(ctx, "authorization", "--url", server.issuer, "--resource", server.issuer+"/mcp",
		"--client-id", clientID,
		"--port", strconv.Itoa(s.port), "--spec-version", version, "--output-dir", s.resultsOf(version))
	child.Stderr = os.Stderr
	said, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	if err := approveAll(ctx, said, server); err != nil {
		cancel()
		return errors.Join(err, child.Wait())
	}
	var failed *exec.ExitError
	if err := child.Wait(); err != nil && !errors.As(err, &failed) { // failures are in the results
		return err
	}
	return ctx.Err()
}

// approveAll reads the output of the suite to its end. The suite may print the authorization URL
// before its callback listens, so an approval waits for both lines.
func approveAll(ctx context.Context, said io.Reader, server *server) error {
	address, listening := "", false
	for lines := bufio.NewScanner(said); lines.Scan(); {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "Callback server started:"):
			listening = true
		case strings.HasPrefix(line, server.issuer+"/oauth/authorize?"):
			address = line
		}
		if !listening || address == "" {
			continue
		}
		if err := approve(ctx, address, server.token); err != nil {
			return err
		}
		address, listening = "", false
	}
	return nil
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// build compiles the servers. Each peer is a separate program, so that no server carries the code
// of another.
func (b *bench) build() (err error) {
	if b.programs, err = os.MkdirTemp("", "pasteport-bench-"); err != nil {
		return err
	}
	build := exec.Command("go", "build", "-o", b.programs+string(filepath.Separator), "./server/...")
	build.Stdout, build.Stderr, build.Env = os.Stderr, os.Stderr, append(os.Environ(), "CGO_ENABLED=0")
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the servers: %w: run the command in the folder bench", err)
	}
	return nil
}

func (b *bench) program(name string) string { return filepath.Join(b.programs, name) }

// programs maps prefixes of server names to programs; the first match wins.
var programs = []struct{ servers, program string }{
	{onPostgres, "replica"},
	{onMariaDB, "replica"},
	{ourGateway, "gateway"},
	{plainProxy, "gateway"},
	{ours, "pasteport"},
	{sdkTools, "sdk"},
	{leastFlowPG, "byhandpg"},
	{leastFlow, "byhand"},
	{bareEcho, "echo"},
	{fositePG, "fositepg"},
	{fosite, "fosite"},
	{goOAuth2, "gooauth2"},
}

// earlier ends the name of a server of an earlier tree.
const earlier = " before"

// command returns the command that runs a server, and the kind of database server that it needs.
func (b *bench) command(name string) (command *exec.Cmd, database string, err error) {
	if strings.HasPrefix(name, oidcProvider) {
		command, err = oidcCommand()
		return command, "", err
	}
	name, isEarlier := strings.CutSuffix(name, earlier)
	kind, database, _ := strings.Cut(name, "+")
	for _, p := range programs {
		if strings.HasPrefix(name, p.servers) {
			program := b.program(p.program)
			if isEarlier {
				program = filepath.Join(b.before, p.program)
			}
			return exec.Command(program, kind), database, nil
		}
	}
	return nil, "", fmt.Errorf("there is no server %q", name)
}

// oidcCommand returns the command of the peer that runs on Node.
func oidcCommand() (*exec.Cmd, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, fmt.Errorf("looking for Node: %w: install it, or leave the peer out with --skip", err)
	}
	return exec.Command(node, filepath.Join("oidc-provider", "server.js")), nil
}

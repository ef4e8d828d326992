package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// oidcCommand runs the peer that is written for Node.
func (b *bench) oidcCommand() (*exec.Cmd, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, fmt.Errorf("looking for Node: %w: install it, or leave the peer out with --skip %s", err, oidcProvider)
	}
	return exec.Command(node, filepath.Join("oidc-provider", "server.js")), nil
}

const rawDatabase = "raw database"

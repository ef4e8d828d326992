package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// durableWrites measures writes of one grant each that return after the disk flush.
func durableWrites(writers int) func(*bench, line, string) (sample, error) {
	return func(b *bench, _ line, name string) (s sample, err error) {
		dir, err := os.MkdirTemp("", "pasteport-bench-")
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		command := exec.Command(b.program("write"), name, strconv.Itoa(writers), b.length.String(),
			filepath.Join(dir, "oauth.db"))
		command.Stderr = os.Stderr
		out, err := command.StdoutPipe()
		if err == nil {
			err = on(b.serverCPU, command.Start)
		}
		if err != nil {
			return nil, err
		}
		err = json.NewDecoder(out).Decode(&s)
		return s, errors.Join(err, command.Wait())
	}
}

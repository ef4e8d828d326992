//go:build !linux && !darwin

package process

import (
	"os"
	"syscall"
	"time"
)

// Other systems have neither process groups nor limits here; limits_linux.go and group_unix.go
// describe the functions.

func attributes() *syscall.SysProcAttr { return nil }

func closeFilesOnExec() {}

func limit(int, Program) error { return nil }

func terminate(pid int) {
	if process, err := os.FindProcess(pid); err == nil {
		_ = process.Kill()
	}
}

func endGroup(int, time.Time) {}

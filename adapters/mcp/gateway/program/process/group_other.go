//go:build !linux && !darwin

package process

import (
	"os"
	"syscall"
	"time"
)

func attributes() *syscall.SysProcAttr { return nil }

func keepFiles() {}

func limit(int, Program) error { return nil }

func terminate(pid int) {
	if process, err := os.FindProcess(pid); err == nil {
		_ = process.Kill()
	}
}

func endGroup(int, time.Time) {}

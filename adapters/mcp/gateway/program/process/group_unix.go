//go:build linux || darwin

package process

import (
	"syscall"
	"time"
)

func terminate(group int) { _ = syscall.Kill(-group, syscall.SIGTERM) }

// endGroup kills what is left of the group of a program that has exited.
func endGroup(group int, until time.Time) {
	for syscall.Kill(-group, syscall.SIGKILL) == nil && time.Now().Before(until) {
		time.Sleep(time.Millisecond)
	}
}

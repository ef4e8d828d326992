//go:build unix

package service

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// writable does not open the file, because closing a database drops all locks
// that this process has on it.
func writable(path string) error { return unix.Access(path, unix.W_OK) }

func userOf(info fs.FileInfo) (id int, known bool) {
	owner, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return int(owner.Uid), true
}

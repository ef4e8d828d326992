//go:build unix

package service

import "golang.org/x/sys/unix"

// writable does not open the file, because closing a database drops all locks
// that this process has on it.
func writable(path string) error { return unix.Access(path, unix.W_OK) }

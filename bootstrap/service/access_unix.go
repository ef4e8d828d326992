//go:build unix

package service

import "golang.org/x/sys/unix"

// writable returns an error if the process may not write the file or folder. It does not open it,
// because closing a database would drop all locks that the process has on it.
func writable(path string) error { return unix.Access(path, unix.W_OK) }

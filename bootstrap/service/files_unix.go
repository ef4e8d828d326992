//go:build unix

package service

import "golang.org/x/sys/unix"

// fileLimit is how many files the process may have open. Go has raised the soft limit to the hard one at its start.
func fileLimit() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return unlimited
	}
	return uint64(limit.Cur) //nolint:unconvert // it is signed on FreeBSD
}

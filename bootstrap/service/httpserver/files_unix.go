//go:build unix

package httpserver

import "golang.org/x/sys/unix"

// fileLimit returns how many files the process may have open. The Go runtime raises the soft limit
// to the hard one at startup.
func fileLimit() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return unlimited
	}
	return uint64(limit.Cur) //nolint:unconvert // it is signed on FreeBSD
}

//go:build linux || darwin || freebsd

package sqlite

import (
	"os"
	"syscall"
)

const canMap = true

// mapPage maps the first page of a file, where changes of other processes show.
func mapPage(of *os.File) (page []byte, err error) {
	open, err := of.SyscallConn()
	if err != nil {
		return nil, err
	}
	refused := open.Control(func(fd uintptr) {
		page, err = syscall.Mmap(int(fd), 0, os.Getpagesize(), syscall.PROT_READ, syscall.MAP_SHARED)
	})
	if refused != nil {
		return nil, refused
	}
	return page, err
}

func unmapPage(page []byte) { _ = syscall.Munmap(page) }

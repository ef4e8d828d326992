//go:build unix

package settings

import (
	"io/fs"
	"syscall"
)

func userOf(info fs.FileInfo) (id int, known bool) {
	owner, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return int(owner.Uid), true
}

//go:build unix

package secretfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// copyOwner gives file the owner, group and mode of old.
func copyOwner(old fs.FileInfo, file *os.File) error {
	owner, known := old.Sys().(*syscall.Stat_t)
	if !known {
		return errors.New("this system does not report the owner of a file")
	}
	if err := file.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
		return err
	}
	return file.Chmod(old.Mode().Perm())
}

//go:build unix

package persistence

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// giveTo lets those use a file who may use the one that it will replace, whoever makes it.
func giveTo(like fs.FileInfo, file *os.File) error {
	owner, known := like.Sys().(*syscall.Stat_t)
	if !known {
		return errors.New("this system does not say whose the file is")
	}
	if err := file.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
		return err
	}
	return file.Chmod(like.Mode().Perm())
}

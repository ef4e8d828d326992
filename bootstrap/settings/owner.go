package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
)

// remedy returns what to add to the error of a file that this process cannot use; "" for any other
// error.
func remedy(err error) string {
	failure := new(fs.PathError)
	switch {
	case !errors.As(err, &failure):
	case errors.Is(failure, fs.ErrPermission):
		return OwnerOf(failure.Path) + ": give it to this user with chown, or name another one"
	case errors.Is(failure, syscall.EROFS):
		return ": name a file in a folder that can be written; in a systemd unit, LogsDirectory and StateDirectory " +
			"make one"
	case errors.Is(failure, fs.ErrNotExist):
		folder := filepath.Dir(failure.Path)
		if _, err := os.Stat(folder); err != nil {
			return ": make the folder " + folder
		}
	}
	return ""
}

// OwnerOf says to whom a file, or the nearest folder above it that exists, belongs and as whom
// this process runs; "" if the system does not tell.
func OwnerOf(path string) string {
	path, _ = filepath.Abs(path)
	info, err := os.Stat(path)
	for err != nil && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		info, err = os.Stat(path)
	}
	if err != nil {
		return ""
	}
	owner := reflect.Indirect(reflect.ValueOf(info.Sys())).FieldByName("Uid") // no system but Unix has it
	if !owner.IsValid() {
		return ""
	}
	return fmt.Sprintf(" (%s belongs to user %d with mode %s, and this process runs as user %d)", path, owner.Uint(),
		info.Mode(), os.Geteuid())
}

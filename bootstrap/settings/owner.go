package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"strconv"
	"syscall"
)

// remedy returns what to add to the error of a file that this process cannot use: to whom it
// belongs and what to do; "" for any other error.
func remedy(err error) string {
	failure := new(fs.PathError)
	if !errors.As(err, &failure) {
		return ""
	}
	folder, _ := filepath.Abs(filepath.Dir(failure.Path))
	switch {
	case errors.Is(failure, fs.ErrPermission):
		return OwnerOf(failure.Path) + ": give it to this user with chown, or name another one"
	case errors.Is(failure, syscall.EROFS):
		return ": name a file in a folder that can be written; in a systemd unit, LogsDirectory and StateDirectory " +
			"make one"
	case errors.Is(failure, fs.ErrNotExist) && existing(folder) != folder:
		return ": make the folder " + folder
	}
	return ""
}

// existing returns the path, or its nearest folder that exists.
func existing(path string) string {
	path, _ = filepath.Abs(path)
	for {
		if _, err := os.Lstat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

// OwnerOf says to whom a file, or the folder in which it is missing, belongs and as whom this
// process runs; "" if the system does not tell.
func OwnerOf(path string) string {
	path = existing(path)
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	owner := reflect.Indirect(reflect.ValueOf(info.Sys())).FieldByName("Uid") // no system but Unix has it
	if !owner.IsValid() {
		return ""
	}
	return fmt.Sprintf(" (%s belongs to %s with mode %s, and this process runs as %s)",
		path, nameOf(strconv.FormatUint(owner.Uint(), 10)), info.Mode(), nameOf(strconv.Itoa(os.Geteuid())))
}

func nameOf(id string) string {
	if found, err := user.LookupId(id); err == nil {
		return fmt.Sprintf("%s (%s)", found.Username, id)
	}
	return "user " + id
}

package suite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	memory   = "/dev/shm"
	enough   = 2 << 30 // bytes; a run of all packages took half a gigabyte
	noExec   = 0x8     // ST_NOEXEC of statvfs(3)
	tempPath = "TMPDIR"
)

// keepFilesInMemory makes a folder in memory the place of temporary files, until it is removed. SQLite and the database servers then
// wait for no disk. Where there is no room, temporary files stay where they are.
func keepFilesInMemory() (remove func() error, err error) {
	var system syscall.Statfs_t
	if err := syscall.Statfs(memory, &system); err != nil || system.Flags&noExec != 0 || system.Bavail*uint64(system.Bsize) < enough {
		return func() error { return nil }, nil
	}
	removeStale()
	folder, err := os.MkdirTemp(memory, fmt.Sprintf("specs-%d-", os.Getpid()))
	if err != nil {
		return nil, err
	}
	former, set := os.LookupEnv(tempPath)
	remove = func() error {
		if set {
			return errors.Join(os.Setenv(tempPath, former), os.RemoveAll(folder))
		}
		return errors.Join(os.Unsetenv(tempPath), os.RemoveAll(folder))
	}
	// Database servers run as other users, so the folder is open to all, as /tmp is.
	return remove, errors.Join(os.Chmod(folder, 0o777|os.ModeSticky), os.Setenv(tempPath, folder))
}

// removeStale removes the folders of runs that were killed.
func removeStale() {
	folders, _ := filepath.Glob(filepath.Join(memory, "specs-*-*"))
	for _, folder := range folders {
		process, err := strconv.Atoi(strings.Split(filepath.Base(folder), "-")[1])
		if err == nil && errors.Is(syscall.Kill(process, 0), syscall.ESRCH) {
			_ = os.RemoveAll(folder)
		}
	}
}

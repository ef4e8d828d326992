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
	memoryFolder = "/dev/shm"
	minFreeBytes = 2 << 30 // four times what a run of all packages used
	noExec       = 0x8     // ST_NOEXEC of statvfs(3)
	tempVariable = "TMPDIR"
)

// keepFilesInMemory sets TMPDIR to a new folder in memory until remove, so that SQLite and the
// database servers do not wait for a disk. It changes nothing if memory has too little room.
func keepFilesInMemory() (remove func() error, err error) {
	var system syscall.Statfs_t
	if err := syscall.Statfs(memoryFolder, &system); err != nil || system.Flags&noExec != 0 ||
		system.Bavail*uint64(system.Bsize) < minFreeBytes {
		return func() error { return nil }, nil
	}
	removeStale()
	folder, err := os.MkdirTemp(memoryFolder, fmt.Sprintf("specs-%d-", os.Getpid()))
	if err != nil {
		return nil, err
	}
	former, set := os.LookupEnv(tempVariable)
	remove = func() error {
		if set {
			return errors.Join(os.Setenv(tempVariable, former), os.RemoveAll(folder))
		}
		return errors.Join(os.Unsetenv(tempVariable), os.RemoveAll(folder))
	}
	// Database servers run as other users, so the folder is open to all, as /tmp is.
	return remove, errors.Join(os.Chmod(folder, 0o777|os.ModeSticky), os.Setenv(tempVariable, folder))
}

// removeStale removes the folders of runs that were killed.
func removeStale() {
	folders, _ := filepath.Glob(filepath.Join(memoryFolder, "specs-*-*"))
	for _, folder := range folders {
		process, err := strconv.Atoi(strings.Split(filepath.Base(folder), "-")[1])
		if err == nil && errors.Is(syscall.Kill(process, 0), syscall.ESRCH) {
			_ = os.RemoveAll(folder)
		}
	}
}

package service

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

// MakeDataDir creates the data folder if it is missing. Other users cannot read it, because it
// holds the server secret. It refuses a folder with a database that this user cannot write.
func MakeDataDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the data folder: %w%s: choose one that can be written with --data",
			err, ownerOf(existing(dir)))
	}
	for _, path := range append([]string{dir}, databaseFiles(filepath.Join(dir, "*.db"))...) {
		if err := checkAccess(path); err != nil {
			return fmt.Errorf("opening the data folder: %w, or choose another folder with --data", err)
		}
	}
	return nil
}

// databaseFiles returns the existing files of SQLite databases.
func databaseFiles(pattern string) (files []string) {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		found, _ := filepath.Glob(pattern + suffix) // fails for a malformed pattern only, which finds nothing
		files = append(files, found...)
	}
	return files
}

// checkAccess returns an error with the owner if this user may not write an
// existing file or folder.
func checkAccess(path string) error {
	if err := writable(path); err != nil {
		return fmt.Errorf("%s cannot be written: %w%s: give it to this user with chown", path, err, ownerOf(path))
	}
	return nil
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

// ownerOf says to whom a file belongs and as whom this process runs, "" if
// the system does not tell.
func ownerOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	owner, known := userOf(info)
	if !known {
		return ""
	}
	return fmt.Sprintf(" (%s belongs to %s with mode %s, and this process runs as %s)",
		path, nameOf(owner), info.Mode(), nameOf(os.Geteuid()))
}

func nameOf(id int) string {
	if found, err := user.LookupId(strconv.Itoa(id)); err == nil {
		return fmt.Sprintf("%s (%d)", found.Username, id)
	}
	return fmt.Sprintf("user %d", id)
}

//go:build unix

package audit

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lock makes sure that one process writes to the file: two would break the chain and rename the
// file of the other. The lock ends with the process.
func lock(file *os.File) error {
	switch err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
	case nil:
		return nil
	case unix.EWOULDBLOCK:
		return ErrLocked
	default:
		return fmt.Errorf("locking it: %w", err)
	}
}

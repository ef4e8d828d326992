package process

import (
	"errors"
	"fmt"
	"math"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
}

// closeFilesOnExec keeps programs from inheriting the files that this process has inherited, as
// from a service manager. Go opens its own like this.
func closeFilesOnExec() { _ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) } // since Linux 5.11

// limit limits a program that has just started, and the processes that it starts from then on.
func limit(pid int, p Program) error {
	mistakes := []error{setLimit(pid, "core files", unix.RLIMIT_CORE, 0)} // a core file would have the key
	if p.Memory > 0 {
		mistakes = append(mistakes, setLimit(pid, "memory", unix.RLIMIT_DATA, uint64(p.Memory)))
	}
	if seconds := p.CPUTime / time.Second; seconds > 0 {
		mistakes = append(mistakes, setLimit(pid, "processor time", unix.RLIMIT_CPU, uint64(seconds)))
	}
	return errors.Join(mistakes...)
}

func setLimit(pid int, what string, resource int, most uint64) error {
	if err := unix.Prlimit(pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil); err != nil {
		return fmt.Errorf("limiting the %s of the program: %w", what, err)
	}
	return nil
}

package process

import (
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// executable returns this executable, also after its file was replaced.
func executable() (string, error) { return "/proc/self/exe", nil }

// ownGroup also ends the program when its supervisor is killed.
func ownGroup() *syscall.SysProcAttr {
	own := attributes()
	own.Pdeathsig = unix.SIGKILL
	return own
}

// prepare makes the supervisor adopt orphaned descendants. The program gets no file that
// this process has inherited.
func prepare() error {
	// A kernel without it has closed those of this process.
	_ = unix.CloseRange(lifelineFile, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	return failed("adopting the descendants", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

// limitMemory limits a process; 0 is this one.
func limitMemory(pid int, program Program) error {
	bytes := uint64(max(0, program.Memory))
	if bytes == 0 {
		return nil
	}
	return failed("limiting the memory", unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: bytes}, nil))
}

// killAdopted kills the children of the supervisor; it then adopts theirs.
func killAdopted() {
	threads, _ := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		// A kernel without it has only the group.
		children, _ := os.ReadFile("/proc/self/task/" + thread.Name() + "/children")
		for _, child := range strings.Fields(string(children)) {
			if pid, err := strconv.Atoi(child); err == nil {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
}

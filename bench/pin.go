package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// pinned is set in the process that pinLoad has restarted on the load's CPU.
const pinned = "PASTEPORT_BENCH_PINNED"

// cpus returns the CPUs that this process may use; the first is for the servers, the second for the
// load.
func cpus() (found []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	for cpu := range 1024 {
		if set.IsSet(cpu) {
			found = append(found, cpu)
		}
	}
	return found
}

// pinLoad restarts this process on one CPU, so that the Go runtime sees only that one, and returns
// the CPU for the servers.
func pinLoad() (serverCPU int, err error) {
	if _, err := fmt.Sscan(os.Getenv(pinned), &serverCPU); err == nil {
		return serverCPU, os.Unsetenv(pinned)
	}
	free := cpus()
	if len(free) < 2 {
		return 0, errors.New("the benchmarks need two CPUs, one for the servers and one for the load generator")
	}
	runtime.LockOSThread()
	if err := setCPU(free[1]); err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	return 0, syscall.Exec(self, os.Args, append(os.Environ(), fmt.Sprintf("%s=%d", pinned, free[0])))
}

// on runs start with the calling thread pinned to a CPU, which child processes inherit, and
// restores the previous CPU.
func on(cpu int, start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := cpus()
	if err := setCPU(cpu); err != nil {
		return fmt.Errorf("pinning a server: %w", err)
	}
	err := start()
	if back := setCPU(before[0]); back != nil {
		return fmt.Errorf("pinning the load: %w", back)
	}
	return err
}

func setCPU(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	return unix.SchedSetaffinity(0, &set)
}

// Command awake keeps the CPU that it runs on from going to sleep until its standard input ends. It gives way to everything else.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

func main() {
	runtime.LockOSThread()
	if err := unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_IDLE}, 0); err != nil {
		fmt.Fprintln(os.Stderr, "awake: giving way to everything else:", err)
		os.Exit(1)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for { //nolint:staticcheck // it is all that it does
	}
}

// Package memory reads how much memory this process may use, and limits the garbage collector to it.
package memory

import (
	"log/slog"
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Limit returns the least of GOMEMLIMIT, the limits of the process's control groups, and what the machine has: math.MaxInt64 on a system
// that tells none of them.
func Limit() int64 {
	limit := uint64(debug.SetMemoryLimit(-1)) //nolint:gosec // never negative
	for _, told := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if bytes, err := told(); err == nil && bytes > 0 {
			limit = min(limit, bytes)
		}
	}
	return int64(min(limit, math.MaxInt64))
}

// LimitGarbage makes the garbage collector respect the limit of the process's control group, unless GOMEMLIMIT is set.
func LimitGarbage(logger *slog.Logger) {
	if _, err := memlimit.Set(); err != nil {
		logger.Warn("cannot read how much memory the process may use", "error", err)
	}
}

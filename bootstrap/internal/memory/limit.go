// Package memory reads the memory limit of the process, and makes the garbage collector respect it.
package memory

import (
	"log/slog"
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Limit returns the memory limit in bytes: the minimum of GOMEMLIMIT, the control group's limit and
// the machine's memory. It returns math.MaxInt64 if none of them is known.
func Limit() int64 {
	limit := uint64(debug.SetMemoryLimit(-1)) //nolint:gosec // never negative
	for _, provider := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if bytes, err := provider(); err == nil && bytes > 0 {
			limit = min(limit, bytes)
		}
	}
	return int64(min(limit, math.MaxInt64))
}

// LimitGarbage makes the garbage collector respect the limit of the process's control group, unless
// GOMEMLIMIT is set.
func LimitGarbage(logger *slog.Logger) {
	if _, err := memlimit.Set(); err != nil {
		logger.Warn("cannot read the memory limit of the control group; set GOMEMLIMIT if it has one", "error", err)
	}
}

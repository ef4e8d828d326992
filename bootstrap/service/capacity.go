package service

import (
	"log/slog"
	"math"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/pasteport/pasteport/bootstrap/internal/memory"
)

const (
	// connectionMemory is what one connection keeps at most before its request is known to be anybody's: 32 KiB of headers as many short
	// lines take 510 KiB in net/http.
	connectionMemory = 512 << 10
	// leastConnections lets a service work that has next to nothing.
	leastConnections = 16
	unlimited        = math.MaxInt64
)

// capacity is what the process may use of what every connection takes.
type capacity struct {
	files  uint64 // open at once
	memory uint64 // bytes
}

// ownCapacity reads the limits of this process: of its user for files; for memory GOMEMLIMIT, or the least of its control groups, or what the
// machine has.
func ownCapacity() capacity {
	return capacity{files: fileLimit(), memory: uint64(memory.Limit())} //nolint:gosec // a limit of memory is never negative
}

// connections leaves half of the files and of the memory to everything else: the database, other servers, garbage.
func (c capacity) connections() int {
	most := min(c.files/2, c.memory/2/connectionMemory, math.MaxInt32)
	return max(leastConnections, int(most))
}

// bounds are those of the service's listener, with as many connections as configured, or else as the process can bear.
func (c Config) bounds() bounds {
	connections, has := c.MaxConnections, ownCapacity()
	if connections <= 0 {
		connections = has.connections()
	}
	c.Logger.Info("limiting the connections that are open at once", "connections", connections, "memory", has.memory, "files", has.files)
	return boundsFor(connections)
}

// limitGarbage has the collector keep to the memory of the process's control group, unless GOMEMLIMIT is set.
func limitGarbage(logger *slog.Logger) {
	if _, err := memlimit.Set(); err != nil {
		logger.Warn("cannot read how much memory the process may use", "error", err)
	}
}

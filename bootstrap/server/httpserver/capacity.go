package httpserver

import (
	"math"

	"github.com/pasteport/pasteport/bootstrap/internal/memory"
)

const (
	// connectionMemory is the maximum memory of a connection before its request is authenticated: 32 KiB of headers in short lines take
	// 510 KiB in net/http.
	connectionMemory = 512 << 10
	// minConnections keeps a service usable if its process has hardly any memory or files.
	minConnections = 16
	unlimited      = math.MaxInt64
)

// Capacity holds the limits of the process that bound its connections.
type Capacity struct {
	Files  uint64 // open at once
	Memory uint64 // bytes
}

// ProcessCapacity reads the limits of this process: the user's limit on open files, and the memory that memory.Limit finds.
func ProcessCapacity() Capacity {
	return Capacity{Files: fileLimit(), Memory: uint64(memory.Limit())} //nolint:gosec // a limit of memory is never negative
}

// Connections leaves half of the files and of the memory to everything else: the database, other servers, garbage.
func (c Capacity) Connections() int {
	most := min(c.Files/2, c.Memory/2/connectionMemory, math.MaxInt32)
	return max(minConnections, int(most))
}

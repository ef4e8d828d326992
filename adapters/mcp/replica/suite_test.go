package replica

import (
	"testing"

	"github.com/pasteport/pasteport/features/suite"
)

func TestReplica(t *testing.T) { suite.Run(t, "Forwarding calls between replicas") }

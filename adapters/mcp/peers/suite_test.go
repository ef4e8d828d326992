package peers

import (
	"testing"

	"github.com/pasteport/pasteport/features/suite"
)

func TestPeers(t *testing.T) { suite.Run(t, "Requests in sessions of other replicas") }

package guard

import (
	"testing"

	"github.com/pasteport/pasteport/features/suite"
)

func TestGuard(t *testing.T) { suite.Run(t, "The guard of an MCP server") }

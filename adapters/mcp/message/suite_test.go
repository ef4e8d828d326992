package message

import (
	"testing"

	"github.com/pasteport/pasteport/features/suite"
)

func TestJSONRPC(t *testing.T) { suite.Run(t, "Messages of JSON-RPC") }

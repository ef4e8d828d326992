package attempt_test

import (
	"testing"

	"github.com/pasteport/pasteport/features/suite"
)

func TestTrace(t *testing.T) { suite.Run(t, "Trace") }

package connection_test

import (
	"testing"
	"time"

	"github.com/pasteport/pasteport/features/suite"
)

func TestTrace(t *testing.T) { suite.Run(t, "Trace") }

var then = time.UnixMilli(1_770_091_506_789).UTC()

const home = "192.0.2.0/24"

package limits

import (
	"testing"
	"time"

	"github.com/pasteport/pasteport/features/suite"
)

func TestLimits(t *testing.T) { suite.Run(t, "Limits") }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

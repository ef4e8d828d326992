package telemetry_test

import (
	"testing"

	"github.com/pasteport/pasteport/features/suite"
)

func TestTelemetry(t *testing.T) {
	suite.Run(t, "Telemetry")
}

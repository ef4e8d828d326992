package nats_test

import (
	"testing"

	"github.com/pasteport/pasteport/features/suite"
)

func TestNATS(t *testing.T) {
	suite.Run(t, "NATS bus")
}

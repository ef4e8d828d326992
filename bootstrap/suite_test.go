package bootstrap_test

import (
	"testing"

	"github.com/pasteport/pasteport/features/suite"
)

func TestBootstrap(t *testing.T) {
	suite.Run(t, "Bootstrap")
}

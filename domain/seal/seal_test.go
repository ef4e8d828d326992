package seal_test

import (
	"testing"

	"github.com/pasteport/pasteport/features/suite"
)

func TestSeal(t *testing.T) {
	suite.Run(t, "Keys and sealed boxes")
}

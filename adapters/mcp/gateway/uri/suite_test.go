package uri

import (
	"testing"

	"github.com/pasteport/pasteport/features/suite"
)

func TestURI(t *testing.T) {
	suite.Run(t, "Reading URIs as servers may")
}

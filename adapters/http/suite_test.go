package http

import (
	"testing"

	"github.com/pasteport/pasteport/features/suite"
)

func TestHTTP(t *testing.T) {
	suite.Run(t, "Authorization server over HTTP")
}

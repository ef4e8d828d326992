package httpserver

import (
	"testing"

	"github.com/pasteport/pasteport/features/suite"
)

func TestHTTPServer(t *testing.T) { suite.Run(t, "HTTP server") }

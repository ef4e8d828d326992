package stream

import (
	"testing"

	"github.com/pasteport/pasteport/features/suite"
)

func TestResponse(t *testing.T) { suite.Run(t, "Responses that end with their grant") }

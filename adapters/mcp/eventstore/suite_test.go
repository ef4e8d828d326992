package eventstore

import (
	"testing"

	"github.com/pasteport/pasteport/features/suite"
)

func TestEventStore(t *testing.T) { suite.Run(t, "The event store") }

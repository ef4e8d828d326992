package service

import (
	"testing"

	"github.com/pasteport/pasteport/features/suite"
)

func TestServer(t *testing.T) { suite.Run(t, "Server") }

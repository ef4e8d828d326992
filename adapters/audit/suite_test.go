package audit_test

import (
	"testing"

	"github.com/pasteport/pasteport/features/suite"
)

func TestAudit(t *testing.T) { suite.Run(t, "Audit") }

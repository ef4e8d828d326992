// Package features_test specifies Pasteport's capabilities from outside: over real HTTP, against
// the servers that bootstrap builds, on real SQLite files.
package features_test

import (
	"testing"

	"github.com/pasteport/pasteport/features/engines"
	"github.com/pasteport/pasteport/features/suite"
)

func TestFeatures(t *testing.T) { suite.RunParallel(t, "Pasteport", engines.Share, shareBinary) }

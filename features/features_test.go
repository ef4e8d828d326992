// Package features_test tells what Pasteport does, capability by capability, as a stranger sees it: over real HTTP, against
// what bootstrap builds, on real SQLite files.
package features_test

import (
	"testing"

	"github.com/pasteport/pasteport/features/engines"
	"github.com/pasteport/pasteport/features/suite"
)

func TestFeatures(t *testing.T) { suite.RunParallel(t, "Pasteport", engines.Share, shareBinary) }

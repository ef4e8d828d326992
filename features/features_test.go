// Package features_test tells what Pasteport does, capability by capability, as a stranger sees it: over real HTTP, against
// what bootstrap builds, on real SQLite files.
package features_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestFeatures(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Pasteport")
}

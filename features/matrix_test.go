package features_test

import (
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/matrix"
)

var _ = Describe("The catalogue of rules", Label("matrix"), func() {
	var rules *matrix.Matrix
	BeforeEach(func() {
		var err error
		rules, err = matrix.Read("..")
		Expect(err).NotTo(HaveOccurred())
	})

	It("has a spec or a reason for every rule, never both, and no label of any other", func() {
		Expect(rules.Problems()).To(BeEmpty())
	})

	It("is what README.md shows", func() {
		page, err := rules.README()
		Expect(err).NotTo(HaveOccurred())
		written, err := os.ReadFile("README.md")
		Expect(err).NotTo(HaveOccurred())
		Expect(string(written) == page).To(BeTrue(), "features/README.md has drifted: go run ./features/matrix/write")
	})
})

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

	It("has a spec or a reason for every rule, not both, and no label of an unknown rule", func() {
		Expect(rules.Problems()).To(BeEmpty())
	})

	It("matches the generated pages", func() {
		pages, err := rules.Pages()
		Expect(err).NotTo(HaveOccurred())
		for _, page := range pages {
			written, err := os.ReadFile("../" + page.Path)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(written) == page.Text).To(BeTrue(), page.Path+" has drifted: go run ./features/matrix/write")
		}
	})
})

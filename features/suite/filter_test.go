package suite_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

func TestSuite(t *testing.T) { suite.Run(t, "Running specs") }

var _ = Describe("Choosing the specs of a run", func() {
	DescribeTable("leaves out what needs other programs or takes long, unless it is named",
		func(given, also, chosen string) { Expect(suite.Filter(given, also)).To(Equal(chosen)) },
		Entry("in every run", "", "", "!browser && !engines && !parsers && !long && !soak"),
		Entry("in a run of .ci/run", "", "browser,engines,long,parsers", "!soak"),
		Entry("with a filter", "D19 || D20", "", "(D19 || D20) && !browser && !engines && !parsers && !long && !soak"),
		Entry("with a filter that names one", "soak && !flood", "engines",
			"(soak && !flood) && !browser && !parsers && !long"),
	)
})

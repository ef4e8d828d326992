package matrix

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

func TestMatrix(t *testing.T) {
	suite.Run(t, "The rule matrix")
}

// source is a file of specs that are read and never run.
const source = `package p

import . "github.com/onsi/ginkgo/v2"

const second = "2025-03-26"

func revisions(some ...string) []TableEntry { return every([]string{"2024-11-05", second}) }

func shared() { It("is shared", Label("Q5"), nil) }

var _ = Describe("A thing", Label("Q1"), func() {
	It("does " + "this", Label("Q2"), func() {})
	When("it is odd", Label("Q4"), func() { Specify("is one", func() { It("is not a spec", Label("Q9"), nil) }) })
	` + "P" + `It("waits", Label("Q8"), func() {})
	DescribeTable("takes", Label("Q3"), func(int) {}, Entry("one", Label("Q2"), 1), Entry(nil, 2))
	DescribeTableSubtree("in", func(revision string) { It("speaks", Label("Q6"), nil) }, revisions())
	shared()
})
`

func matrixOf(table, source string) *Matrix {
	GinkgoHelper()
	root := GinkgoT().TempDir()
	Expect(os.WriteFile(filepath.Join(root, "p_test.go"), []byte(source), 0o600)).To(Succeed())
	rules, err := readRules(table)
	Expect(err).NotTo(HaveOccurred())
	specs, cited, err := readSource(root)
	Expect(err).NotTo(HaveOccurred())
	return &Matrix{rules, specs, cited}
}

func pageOf(m *Matrix, path string) string {
	GinkgoHelper()
	pages, err := m.Pages()
	Expect(err).NotTo(HaveOccurred())
	for _, page := range pages {
		if page.Path == path {
			return page.Text
		}
	}
	Fail("there is no page " + path)
	return ""
}

var _ = Describe("Reading specs", func() {
	It("finds sentences and inherited labels as Ginkgo would", func() {
		var found []string
		for _, spec := range matrixOf("", source).Specs {
			found = append(found, spec.Sentence()+" "+strings.Join(spec.Labels(), ","))
		}
		Expect(found).To(ConsistOf(
			"A thing does this Q1,Q2", "A thing when it is odd is one Q1,Q4", "A thing takes one Q1,Q3,Q2",
			"A thing takes Q1,Q3",
			"A thing in … speaks Q1,MCP 2024-11-05,Q6", "A thing in … speaks Q1,MCP 2025-03-26,Q6",
			"A thing is shared Q1,Q5",
		))
	})
})

var _ = Describe("Comparing the rules with the specs", func() {
	const rules = "Q\tQuestions\nQ1\tone\nQ2\ttwo\nQ3\tthree\nQ4\tfour\nQ5\tfive\nQ6\tsix\n"

	It("finds no problem when each rule has a spec", func() {
		Expect(matrixOf(rules, source).Problems()).To(BeEmpty())
	})

	DescribeTable("reports", func(table, problem string) {
		Expect(matrixOf(table, source).Problems()).To(ConsistOf(ContainSubstring(problem)))
	},
		Entry("a rule with neither a spec nor a reason", rules+"Q8\teight\n",
			"Q8 has neither a spec nor a reason: eight"),
		Entry("a rule with both", strings.Replace(rules, "six", "six\ttoo hard", 1),
			"Q6 has a spec, so it needs no reason: too hard"),
		Entry("a label that is not a rule", strings.Replace(rules, "Q5\tfive\n", "", 1),
			`"A thing is shared" has the label Q5, which is not a rule`),
	)

	It("reports a number in the product that is not a rule, and a label of an unknown subject", func() {
		root := GinkgoT().TempDir()
		product := `package p; var known, unknown, text = "Q1", "Z9", "Z9."`
		Expect(os.WriteFile(filepath.Join(root, "p.go"), []byte(product), 0o600)).To(Succeed())
		spec := strings.Replace(source, `"Q5"`, `"Q5", "Z8"`, 1)
		Expect(os.WriteFile(filepath.Join(root, "p_test.go"), []byte(spec), 0o600)).To(Succeed())
		table, err := readRules(rules)
		Expect(err).NotTo(HaveOccurred())
		specs, cited, err := readSource(root)
		Expect(err).NotTo(HaveOccurred())
		Expect((&Matrix{table, specs, cited}).Problems()).To(ConsistOf("p.go: Z9 is not a rule",
			ContainSubstring(`"A thing is shared" has the label Z8, which is not a rule`)))
	})

	DescribeTable("refuses a list", func(table string) {
		_, err := readRules(table)
		Expect(err).To(MatchError(ContainSubstring("reading the rules")))
	}, Entry("with a rule twice", "Q1\ta\nQ1\tb\n"), Entry("without a sentence", "Q1\n"),
		Entry("with a line that does not begin with a number", "Qx\ta\n"),
		Entry("with a fourth column", "Q1\ta\tb\tc\n"))

	It("counts specs, names revisions and lists reasons", func() {
		page, err := matrixOf(rules+"Q7\tseven\tit cannot be seen\n", source).Proofs()
		Expect(err).NotTo(HaveOccurred())
		Expect(page.Text).To(ContainSubstring("\n## Q: Questions\n"))
		Expect(page.Text).
			To(ContainSubstring("| Q1 | one | A thing (7) · [p_test.go](../p_test.go) | 2024-11-05, 2025-03-26 |\n"))
		Expect(page.Text).To(ContainSubstring("| Q3 | three | A thing takes (2) · [p_test.go](../p_test.go) | any |\n"))
		Expect(page.Text).To(ContainSubstring("| Q7 | seven | it cannot be seen |\n"))
	})

	It("lists every rule with its sentence by subject", func() {
		page := pageOf(matrixOf(rules+"Z\tLast things\nZ1\tthe last\tit cannot be seen\n", source), "docs/rules.md")
		Expect(page).To(ContainSubstring("\n## Q: Questions\n\n- **Q1** one\n- **Q2** two\n"))
		Expect(page).To(HaveSuffix("\n- **Q6** six\n\n## Z: Last things\n\n- **Z1** the last\n"))
	})

	It("makes one capability of each file in features/", func() {
		m := matrixOf(rules, source)
		for i := range m.Specs {
			m.Specs[i].File = "features/a_test.go"
		}
		m.Specs = append(m.Specs,
			Spec{"features/b_test.go",
				[]Node{{"Asking", []string{"RFC 7009 §2", "Q1", "X1"}}, {"well", []string{"2025-03-26"}}}},
			Spec{"domain/c_test.go", []Node{{Text: "Hiding"}}})
		page := pageOf(m, "features/README.md")
		Expect(page).To(
			HaveSuffix("|\n| [A thing](a_test.go) | Q | all |  |\n" +
				"| [Asking](b_test.go) | Q | 2025-03-26 | RFC 7009 |\n"))
	})
})

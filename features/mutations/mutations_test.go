package main

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

func TestMutations(t *testing.T) { suite.Run(t, "Mutations") }

// code is a file whose functions the rows below change.
const code = `package p

const limit = 4 // the most

type box[T any] struct{ of T }

func (b *box[T]) open(key string) error {
	if err := check(key); err != nil { // a note
		return fmt.Errorf("the key %q does not "+
			"fit", key)
	}
	return b.lock.open(
		key, // the second note
		limit,
	)
}

func open() { open(); open() }
`

func productOf(text string) product {
	GinkgoHelper()
	found := product{}
	Expect(found.addFunctions("p/p.go", text)).To(Succeed())
	return found
}

// promises returns the items of the lists in SECURITY.md that say what the product does, and the
// heading of the section about files.
func promises() (found []string) {
	GinkgoHelper()
	text, err := os.ReadFile("../../SECURITY.md")
	Expect(err).NotTo(HaveOccurred())
	section := ""
	for line := range strings.Lines(string(text)) {
		if title, isHeading := strings.CutPrefix(line, "## "); isHeading {
			section = strings.TrimSpace(title)
		}
		item, isItem := strings.CutPrefix(line, "- ")
		if isItem && slices.Contains([]string{"What Pasteport promises", "What a gateway adds"}, section) {
			found = append(found, strings.TrimPrefix(strings.TrimSpace(item), "**"))
		}
	}
	Expect(len(found)).To(BeNumerically(">", 20))
	return append(found, "What to protect")
}

// stagesOf returns the slow stages that .ci/stages lists for a file.
func stagesOf(file string) []string {
	GinkgoHelper()
	text, err := os.ReadFile("../../.ci/stages")
	Expect(err).NotTo(HaveOccurred())
	for ; file != "."; file = path.Dir(file) {
		for line := range strings.Lines(string(text)) {
			if stages := strings.Fields(line); len(stages) > 0 && stages[0] == file {
				return stages[1:]
			}
		}
	}
	return nil
}

var _ = Describe("The rows of mutations", func() {
	It("each match the code once", func() {
		found, err := mutations("../..")
		Expect(err).NotTo(HaveOccurred())
		Expect(found).NotTo(BeEmpty())
	})

	It("guard every promise of SECURITY.md, and nothing else", func() {
		rows, err := readRows(table)
		Expect(err).NotTo(HaveOccurred())
		Expect(len(rows)).To(BeNumerically("<=", 155))
		unguarded := promises()
		for _, r := range rows {
			Expect(promises()).To(ContainElement(HavePrefix(r.promise)), "the heading of a row is not a promise")
			isGuarded := func(text string) bool { return strings.HasPrefix(text, r.promise) }
			unguarded = slices.DeleteFunc(unguarded, isGuarded)
		}
		Expect(unguarded).To(BeEmpty())
	})

	It("are applied after a change of their file", func() {
		found, err := mutations("../..")
		Expect(err).NotTo(HaveOccurred())
		for _, m := range found {
			Expect(stagesOf(m.file.path)).To(ContainElement("mutations"), m.file.path)
		}
	})

	DescribeTable("match whatever the formatting", func(in, before, after, mutated string) {
		m, err := productOf(code).find(row{in: in, before: before, after: after})
		Expect(err).NotTo(HaveOccurred())
		Expect(m.body()).To(ContainSubstring(mutated))
	},
		Entry("across a comment",
			"p.box.open", "err != nil { return fmt", "false { return fmt", "; false { return fmt.Errorf("),
		Entry("across the lines of a list",
			"p.box.open", "open(key, limit)", "open(key, 0)", "return b.lock.open(key, 0)\n"),
		Entry("across the lines of a string",
			"p.box.open", "does not fit", "fits", `"the key %q fits", key)`),
		Entry("in part of a word", "p.box.open", "nil {", "err {", "err != err {"),
	)

	DescribeTable("are refused", func(r row, problem string) {
		r.line = 7
		_, err := productOf(code).locate([]row{r})
		Expect(err).To(MatchError(problem))
	},
		Entry("without a match", row{in: "p.box.open", before: "shut"},
			`mutations.tsv:7: p.box.open contains "shut" 0 times, want once`),
		Entry("with two matches", row{in: "p.open", before: "open()"},
			`mutations.tsv:7: p.open contains "open()" 2 times, want once`),
		Entry("with a semicolon at an end", row{in: "p.open", before: "open(); open();"},
			`mutations.tsv:7: "open(); open();" begins or ends with a semicolon`),
		Entry("without their function, but with the place of the text", row{in: "p.Box.Open", before: "check(key)"},
			`mutations.tsv:7: the product has no p.Box.Open; it is in p.box.open`),
		Entry("without a text", row{in: "p.open"}, `mutations.tsv:7: p.open contains "" 0 times, want once`),
	)

	It("become branches of their function", func() {
		code := productOf(code)
		first, err := code.find(row{
			line:   3,
			in:     "p.open",
			before: "open(); open()",
			after:  "open()",
		})
		Expect(err).NotTo(HaveOccurred())
		second, err := code.find(row{
			line:   4,
			in:     "p.box.open",
			before: "limit",
			after:  "0",
		})
		Expect(err).NotTo(HaveOccurred())
		mutated := withBranches([]mutation{second, first})
		Expect(productOf(mutated)).To(HaveLen(2))
		Expect(mutated).To(MatchRegexp(`if chosenMutation == "3" \{.* open\(\) \nreturn\n\};.* open\(\); open\(\) \}`))
		Expect(mutated).To(MatchRegexp(`(?s)if chosenMutation == "4" \{.*key, // the second note\n\t\t0,\n\t\)\n\n\};`))
	})

	DescribeTable("are chosen", func(wanted selection, chosen bool) {
		m := mutation{row{rule: "Q1"}, match{function: function{file: &file{path: "p/p.go"}}}}
		Expect(wanted.has(m)).To(Equal(chosen))
	},
		Entry("all", selection{}, true),
		Entry("by rule", selection{rules: []string{"Q2", "Q1"}}, true),
		Entry("by another rule", selection{rules: []string{"Q2"}}, false),
		Entry("by file", selection{files: []string{"p/p.go"}}, true),
		Entry("by another file", selection{files: []string{"p/q.go"}}, false),
		Entry("by a file of this tool", selection{files: []string{"features/matrix/rules.tsv"}}, true),
	)
})

package audit_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/audit"
)

// tampered returns lines with one manipulation, and its description.
func tampered(chance *rand.Rand, lines [][]byte) (changed [][]byte, what string) {
	lines = slices.Clone(lines)
	at := chance.IntN(len(lines))
	switch chance.IntN(7) {
	case 0:
		line, byteAt := bytes.Clone(lines[at]), chance.IntN(len(lines[at])-1)
		line[byteAt] ^= byte(1 << chance.IntN(7))
		lines[at] = line
		return lines, fmt.Sprintf("a changed byte %d in line %d", byteAt, at+1)
	case 1:
		return slices.Delete(lines, at, at+1), fmt.Sprintf("the removal of line %d", at+1)
	case 2:
		other := (at + 1 + chance.IntN(len(lines)-1)) % len(lines)
		lines[at], lines[other] = lines[other], lines[at]
		return lines, fmt.Sprintf("swapped lines %d and %d", at+1, other+1)
	case 3:
		return slices.Insert(lines, at, lines[at]), fmt.Sprintf("line %d twice", at+1)
	case 4:
		line := lines[chance.IntN(len(lines))]
		for bytes.Equal(line, lines[at]) {
			line = lines[chance.IntN(len(lines))]
		}
		return slices.Insert(lines, at, line), fmt.Sprintf("a copy of another line at line %d", at+1)
	case 5: // with a number and hashes that are right for itself
		forged := audit.Forge([]byte(`{"time":"2026-11-26T10:00:00.000000Z","subject":"mallory"}`), lines[max(0, at-1)])
		return slices.Insert(lines, max(1, at), append(forged, '\n')), fmt.Sprintf("a forged line before line %d", at+1)
	default:
		forged := audit.Forge([]byte(`{"time":"2026-11-26T10:00:00.000000Z","subject":"mallory"}`), lines[max(0, at-1)])
		lines[max(1, at)] = append(forged, '\n')
		return lines, fmt.Sprintf("a forged line in place of line %d", max(1, at)+1)
	}
}

var _ = Describe("Verifying an audit", Label("V4"), func() {
	var path string
	BeforeEach(func() { path = filepath.Join(GinkgoT().TempDir(), "calls.jsonl") })

	linesOf := func(name string) [][]byte {
		text, err := os.ReadFile(name)
		Expect(err).NotTo(HaveOccurred())
		return slices.Collect(bytes.Lines(text))
	}

	It("finds each of 200 manipulations, and none in files that were not changed", func() {
		rotated(path, 150)
		files := all(path)
		Expect(len(files)).To(BeNumerically(">=", 3))
		expect := verified("", files...).Hash
		Expect(verified(expect, files...).Problems).To(BeEmpty())
		chance := rand.New(rand.NewPCG(29, 5))
		for range 200 {
			changed := chance.IntN(len(files))
			lines, what := tampered(chance, linesOf(files[changed]))
			var sources []audit.Source
			for i, name := range files {
				content := linesOf(name)
				if i == changed {
					content = lines
				}
				sources = append(sources,
					audit.Source{Name: filepath.Base(name), Reader: bytes.NewReader(bytes.Join(content, nil))})
			}
			report, err := audit.Verify(expect, sources...)
			Expect(err).NotTo(HaveOccurred())
			Expect(report.Problems).NotTo(BeEmpty(), what+" of "+files[changed])
		}
	})

	DescribeTable("says where the problem is", func(change func([][]byte) [][]byte, problem string) {
		recorded(audit.Options{Path: path}, 1, 9)
		lines := change(linesOf(path))
		report, err := audit.Verify("",
			audit.Source{Name: "calls.jsonl", Reader: bytes.NewReader(bytes.Join(lines, nil))})
		Expect(err).NotTo(HaveOccurred())
		Expect(report.Problems).To(HaveLen(1), fmt.Sprint(report.Problems))
		Expect(report.Problems[0].String()).To(Equal(problem))
	},
		Entry("for a changed line", func(l [][]byte) [][]byte {
			l[4] = bytes.Replace(l[4], []byte("ann"), []byte("bob"), 1)
			return l
		}, "calls.jsonl:5: it was changed: its text does not have the hash that it carries"),
		Entry("for missing lines", func(l [][]byte) [][]byte {
			return slices.Delete(l, 3, 5)
		}, "calls.jsonl:4: the chain has a gap before it: numbers 4 to 5 are missing"),
		Entry("for a line that is there twice", func(l [][]byte) [][]byte { return slices.Insert(l, 4, l[3]) },
			"calls.jsonl:5: it is number 4 after number 4: it was moved, or put in again"),
		Entry("for a replaced line", func(l [][]byte) [][]byte {
			l[4] = append(audit.Forge([]byte(`{"subject":"mallory"}`), l[3]), '\n')
			return l
		}, "calls.jsonl:6: the line before it was replaced: this line carries another hash of it"),
	)

	It("finds lines that are missing at the end by the hash of the last line only", func() {
		recorded(audit.Options{Path: path}, 1, 9)
		expect := verified("", path).Hash
		lines := linesOf(path)
		text := bytes.Join(lines[:9], nil)
		for hash, problems := range map[string]int{"": 0, expect: 1} {
			report, err := audit.Verify(hash, audit.Source{Name: "calls.jsonl", Reader: bytes.NewReader(text)})
			Expect(err).NotTo(HaveOccurred())
			Expect(report.Problems).To(HaveLen(problems))
		}
	})

	It("finds a cut-off line at the end of a file that another one follows", func() {
		rotated(path, 100)
		lines := linesOf(path + ".50")
		last := len(lines) - 1
		lines[last] = lines[last][:100]
		report, err := audit.Verify("", audit.Source{Name: "one", Reader: bytes.NewReader(bytes.Join(lines, nil))},
			audit.Source{Name: "two", Reader: bytes.NewReader(bytes.Join(linesOf(path), nil))})
		Expect(err).NotTo(HaveOccurred())
		Expect(report.Problems).To(HaveLen(1))
		Expect(report.Problems[0].String()).
			To(Equal("two:1: the chain has a gap before it: numbers 51 to 51 are missing"))
		Expect(report.Notes).To(ConsistOf(HaveField("Text", HavePrefix("the last line is cut off"))))
	})

	It("finds a file that is missing between two others, and sorts files by their lines", func() {
		rotated(path, 150)
		files := all(path)
		slices.Reverse(files)
		Expect(verified("", files...).Problems).To(BeEmpty())
		report := verified("", slices.Delete(files, 1, 2)...)
		Expect(report.Problems).To(ConsistOf(HaveField("Text", ContainSubstring("the chain has a gap before it"))))
	})
})

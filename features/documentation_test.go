package features_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var (
	markdownLink = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	codeBlock    = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	heading      = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	stepName     = regexp.MustCompile(`\b(?:persistence|bootstrap|oauth|server)\.\w+|\b(?:Issuer|VerifyBearer):`)
)

// documents returns the Markdown files of the repository, relative to this folder.
func documents() (names []string) {
	GinkgoHelper()
	ignored := ignoredFolders()
	Expect(filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() &&
			(slices.Contains([]string{".git", "node_modules"}, entry.Name()) || slices.Contains(ignored, name)):
			return filepath.SkipDir
		case filepath.Ext(name) == ".md":
			names = append(names, name)
		}
		return nil
	})).To(Succeed())
	return names
}

func textOf(name string) string {
	GinkgoHelper()
	text, err := os.ReadFile(name)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// anchors returns the fragments of a page's headings, as GitHub generates them.
func anchors(page string) (found []string) {
	GinkgoHelper()
	for _, match := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(textOf(page), ""), -1) {
		found = append(found, strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return found
}

var _ = Describe("Documentation", Label("documentation"), func() {
	It("links to files and headings that exist", func() {
		pages := documents()
		Expect(pages).To(ContainElements("../README.md", "../docs/gateway.md", "../features/README.md"))
		for _, page := range pages {
			for _, match := range markdownLink.FindAllStringSubmatch(codeBlock.ReplaceAllString(textOf(page), ""), -1) {
				target, anchor, hasAnchor := strings.Cut(match[1], "#")
				if strings.Contains(target, "://") {
					continue
				}
				file := page
				if target != "" {
					file = filepath.Join(filepath.Dir(page), target)
				}
				Expect(file).To(BeAnExistingFile(), "%s links to %s", page, match[1])
				if hasAnchor {
					Expect(anchors(file)).To(ContainElement(anchor), "%s links to %s", page, match[1])
				}
			}
		}
	})

	It("prints no command that compiles the C code of a dependency: each turns cgo off, in its line or before it",
		func() {
			compiles := regexp.MustCompile(`\bgo (build|install|test|run \./bootstrap)\b`)
			checked := 0
			for _, page := range append(documents(), "../deploy/Dockerfile") {
				off := false
				for line := range strings.Lines(textOf(page)) {
					// To the end of the block.
					off = !strings.HasPrefix(line, "```") && (off || strings.HasPrefix(line, "export CGO_ENABLED=0"))
					if compiles.MatchString(line) {
						checked++
						Expect(off || strings.Contains(line, "CGO_ENABLED=0")).To(BeTrue(), "%s: %s", page, line)
					}
				}
			}
			Expect(checked).To(BeNumerically(">", 10))
		})

	It("has a README of at most 10 KB", func() {
		Expect(len(textOf("../README.md"))).To(BeNumerically("<=", 10_000))
	})

	DescribeTable("shows the four steps with the names in the compiled example", func(page string) {
		_, rest, found := strings.Cut(textOf(page), "```go\n")
		Expect(found).To(BeTrue())
		steps, _, _ := strings.Cut(rest, "```")
		names := stepName.FindAllString(steps, -1)
		Expect(names).To(ContainElements("persistence.OpenSQLite", "VerifyBearer:", "server.Register"))
		example := textOf("../bootstrap/example_test.go")
		for _, name := range names {
			Expect(example).To(ContainSubstring(name))
		}
	}, Entry("in README.md", "../README.md"), Entry("in docs/embedding.md", "../docs/embedding.md"))
})

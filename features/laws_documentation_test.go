package features_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/matrix"
)

var (
	markdownLink = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	autolink     = regexp.MustCompile(`<https://[^>]+>`)
	codeBlock    = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	heading      = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	// threat is a row of the threat model: its letter, and the file and the sentence of its spec.
	threat       = regexp.MustCompile(`(?m)^\| ([STRIDE]) \|.*\| \[[^]]+\]\(([^)]+)\): (.+) \|$`)
	limitSetting = regexp.MustCompile("`set:\"([a-z0-9-]+)\"")
	oauthPath    = regexp.MustCompile(`Path += "(/oauth/\w+)`)
	qualified    = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w+)`)
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

// guides returns the pages for people who use or change Pasteport.
func guides() []string {
	GinkgoHelper()
	pages := must(filepath.Glob("../docs/*.md"))
	return append(pages, "../README.md", "../SECURITY.md", "../ARCHITECTURE.md", "../CONTRIBUTING.md")
}

// sourceIn returns the Go source in a folder, without that of tests.
func sourceIn(folder string) string {
	GinkgoHelper()
	files := must(filepath.Glob(filepath.Join(folder, "*.go")))
	Expect(files).NotTo(BeEmpty(), folder)
	var source strings.Builder
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			source.WriteString(textOf(file))
		}
	}
	return source.String()
}

func textOf(name string) string {
	GinkgoHelper()
	return string(must(os.ReadFile(name)))
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

	It("has a README of at most 6 KB, at most 14 pages, and at most 28,000 words with all guides", func() {
		Expect(len(textOf("../README.md"))).To(BeNumerically("<=", 6_000))
		pages := must(filepath.Glob("../docs/*.md"))
		Expect(len(pages)).To(And(BeNumerically(">", 10), BeNumerically("<=", 14)), "%v", pages)
		words := 0
		for _, page := range guides() {
			words += len(strings.Fields(textOf(page)))
		}
		Expect(words).To(BeNumerically("<=", 28_000), "shorten one of %v", guides())
	})

	It("is listed in llms.txt", func() {
		list := textOf("../llms.txt")
		var listed []string
		for _, link := range markdownLink.FindAllStringSubmatch(list, -1) {
			listed = append(listed, "../"+link[1])
		}
		Expect(listed).To(ConsistOf(guides()))
	})

	It("is wrapped at 100 columns, except for tables, links and code", func() {
		decisions := must(filepath.Glob("../docs/adr/*.md"))
		Expect(decisions).NotTo(BeEmpty())
		for _, page := range slices.Concat(guides(), decisions, []string{"../adapters/persistence/SCHEMA.md"}) {
			if page == "../docs/rules.md" {
				continue // one line for each rule, so that a search for its number shows all of it
			}
			prose := codeBlock.ReplaceAllString(textOf(page), "")
			prose = autolink.ReplaceAllString(markdownLink.ReplaceAllString(prose, "]"), "")
			for line := range strings.Lines(prose) {
				line = strings.TrimSpace(line)
				if strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#") || !strings.Contains(line, " ") {
					continue
				}
				Expect(utf8.RuneCountInString(line)).To(BeNumerically("<=", 100), "%s: %s", page, line)
			}
		}
	})

	It("names only what the Go packages export", func() {
		exported := map[string]string{}
		for name, folder := range map[string]string{
			"bootstrap":     "../bootstrap",
			"oauth":         "../domain/oauth",
			"attempt":       "../domain/attempt",
			"persistence":   "../adapters/persistence",
			"diagnosis":     "../domain/diagnosis",
			"audit":         "../adapters/audit",
			"cimd":          "../adapters/cimd",
			"storespec":     "storespec",
			"pasteporttest": "../bootstrap/pasteporttest",
		} {
			exported[name] = sourceIn(folder)
		}
		checked := 0
		for _, page := range guides() {
			for _, match := range qualified.FindAllStringSubmatch(textOf(page), -1) {
				source, known := exported[match[1]]
				if !known {
					continue
				}
				checked++
				declared := regexp.MustCompile(`(?m)^(?:func|type|var|const|\t)(?:\s|\([^)]*\) )*` + match[2] + `\b`)
				Expect(declared.MatchString(source)).To(BeTrue(), "%s: %s", page, match[0])
			}
		}
		Expect(checked).To(BeNumerically(">", 50))
	})

	It("lists every field of oauth.Config", func() {
		page := textOf("../docs/embedding.md")
		for _, field := range reflect.VisibleFields(reflect.TypeFor[oauth.Config]()) {
			row := regexp.MustCompile("(?m)^\\| .*`" + field.Name + "`.* \\|")
			Expect(row.MatchString(page)).To(BeTrue(), "docs/embedding.md has no row for "+field.Name)
		}
	})

	It("lists every setting of oauth.Limits in docs/limits.md", func() {
		_, limits, _ := strings.Cut(textOf("../bootstrap/service/config.go"), "type Limits struct")
		limits, _, _ = strings.Cut(limits, "\n}")
		settings := limitSetting.FindAllStringSubmatch(limits, -1)
		Expect(settings).To(HaveLen(reflect.TypeFor[oauth.Limits]().NumField()))
		for _, setting := range settings {
			Expect(textOf("../docs/limits.md")).To(ContainSubstring(setting[1]))
		}
	})

	It("lists every endpoint below /oauth/", func() {
		paths := oauthPath.FindAllStringSubmatch(sourceIn("../adapters/http")+sourceIn("../domain/oauth"), -1)
		Expect(len(paths)).To(BeNumerically(">", 5))
		for _, path := range paths {
			Expect(textOf("../docs/embedding.md")).To(ContainSubstring(path[1]))
		}
	})

	It("names every language of the pages", func() {
		files := must(filepath.Glob("../adapters/http/pages/locales/*.json"))
		Expect(files).NotTo(BeEmpty())
		for _, file := range files {
			tag := must(language.Parse(strings.TrimSuffix(filepath.Base(file), ".json")))
			Expect(textOf("../docs/embedding.md")).To(ContainSubstring(display.English.Languages().Name(tag)))
		}
	})

	It("names a spec that exists for every threat in SECURITY.md", func() {
		rules := must(matrix.Read(".."))
		_, section, _ := strings.Cut(textOf("../SECURITY.md"), "## Threat model\n")
		section, _, _ = strings.Cut(section, "\n## ")
		rows := threat.FindAllStringSubmatch(section, -1)
		Expect(len(rows)).To(BeNumerically(">", 20))
		Expect(rows).To(HaveLen(strings.Count(section, "\n|")-2), "every row but the two of the heading")
		kinds := map[string]bool{}
		for _, row := range rows {
			kinds[row[1]] = true
			isTheSpec := func(s matrix.Spec) bool {
				return s.File == row[2] && strings.Contains(s.Sentence(), row[3])
			}
			Expect(slices.ContainsFunc(rules.Specs, isTheSpec)).To(BeTrue(), "%s has no spec %q", row[2], row[3])
		}
		Expect(kinds).To(HaveLen(6), "S, T, R, I, D and E")
	})

	DescribeTable("shows the four steps with the names in the compiled example", func(page, begin, end string) {
		_, rest, found := strings.Cut(textOf(page), begin)
		Expect(found).To(BeTrue())
		steps, _, _ := strings.Cut(rest, end)
		names := stepName.FindAllString(steps, -1)
		Expect(names).To(ContainElements("persistence.OpenSQLite", "VerifyBearer:", "server.Register"))
		example := textOf("../bootstrap/example_test.go")
		for _, name := range names {
			Expect(example).To(ContainSubstring(name))
		}
	},
		Entry("in README.md", "../README.md", "```go\n", "```"),
		Entry("in docs/embedding.md", "../docs/embedding.md", "```go\n", "```"),
		Entry("in doc.go", "../doc.go", "takes four steps:\n", "// tools is"),
	)
})

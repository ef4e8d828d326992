package features_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/matrix"
)

func ciStages(script, name string) []string {
	GinkgoHelper()
	list := regexp.MustCompile(`(?m)^readonly ` + name + `=\((.*)\)$`).FindStringSubmatch(script)
	Expect(list).NotTo(BeNil())
	return strings.Fields(list[1])
}

// ciTable returns the rows of .ci/stages: a path and its slow stages.
func ciTable() map[string][]string {
	GinkgoHelper()
	text := must(os.ReadFile("../.ci/stages"))
	rows := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(line, "#") {
			Expect(rows).NotTo(HaveKey(fields[0]))
			rows[fields[0]] = fields[1:]
		}
	}
	return rows
}

// foldersOfCode returns the folders of the module that hold files.
func foldersOfCode() []string {
	GinkgoHelper()
	folders, ignored := map[string]bool{}, ignoredFolders()
	Expect(ignored).To(ContainElement("../build"))
	Expect(filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (slices.Contains([]string{".git", "node_modules", "testdata"}, entry.Name()) ||
			slices.Contains(ignored, name)):
			return filepath.SkipDir
		case !entry.IsDir() && filepath.Dir(name) != "..":
			folders[strings.TrimPrefix(filepath.ToSlash(filepath.Dir(name)), "../")] = true
		}
		return nil
	})).To(Succeed())
	return slices.Sorted(maps.Keys(folders))
}

func ignoredFolders() (names []string) {
	GinkgoHelper()
	text := must(os.ReadFile("../.gitignore"))
	for _, folder := range regexp.MustCompile(`(?m)^/(.*)/$`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, "../"+folder[1])
	}
	return names
}

var _ = Describe("CI stages of a change", Label("ci"), func() {
	var script string
	BeforeEach(func() {
		script = string(must(os.ReadFile("../.ci/run")))
	})

	It("runs every stage", func() {
		var defined []string
		for _, stage := range regexp.MustCompile(`(?m)^stage_(\w+)\(\)`).FindAllStringSubmatch(script, -1) {
			defined = append(defined, stage[1])
		}
		Expect(slices.Concat(ciStages(script, "quick"), ciStages(script, "slow"), ciStages(script, "apart"))).
			To(ConsistOf(defined))
	})

	It("chooses specs by labels that specs have, and never by file, because a file may get another name", func() {
		Expect(script).NotTo(ContainSubstring("focus-file"))
		all := must(matrix.Read(".."))
		labels := map[string]bool{}
		for _, spec := range all.Specs {
			for _, label := range spec.Labels() {
				labels[label] = true
			}
		}
		chosen := regexp.MustCompile(`(?m)(?:^ +specs |label-filter )('[^']+'|\w+)`).FindAllStringSubmatch(script, -1)
		Expect(len(chosen)).To(BeNumerically(">=", 9))
		for _, filter := range chosen {
			for _, label := range regexp.MustCompile(`\w+`).FindAllString(filter[1], -1) {
				Expect(labels).To(HaveKey(label), "chosen in .ci/run")
			}
		}
	})

	It("names each slow stage in a row, and no other stage", func() {
		named := map[string]bool{}
		for _, stages := range ciTable() {
			Expect(stages).NotTo(BeEmpty())
			for _, stage := range stages {
				named[stage] = true
			}
		}
		delete(named, "all")
		delete(named, "-")
		Expect(slices.Collect(maps.Keys(named))).To(ConsistOf(ciStages(script, "slow")))
	})

	It("fuzzes the packages with fuzz targets", func() {
		needs := func(file string) []string {
			rows := ciTable()
			above := file
			for rows[above] == nil {
				above = filepath.Dir(above)
			}
			return rows[above]
		}
		for _, folder := range foldersOfCode() {
			for _, file := range must(filepath.Glob(filepath.Join("..", folder, "*_test.go"))) {
				if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "\nfunc Fuzz") {
					Expect(err).NotTo(HaveOccurred())
					Expect(needs(folder)).To(ContainElement("fuzz"), folder)
				}
			}
		}
	})

	It("has a row for each folder, and no row for a missing path", func() {
		rows := ciTable()
		for path := range rows {
			Expect(filepath.Join("..", path)).To(BeAnExistingFile())
		}
		folders := foldersOfCode()
		Expect(folders).To(ContainElements(".ci", "adapters/mcp/guard", "deploy/kubernetes", "domain/oauth"))
		for _, folder := range folders {
			found := false
			for above := folder; above != "."; above = filepath.Dir(above) {
				found = found || rows[above] != nil
			}
			Expect(found).To(BeTrue(), folder+" is in no row of .ci/stages")
		}
	})
})

var _ = Describe("The catalogue of rules", Label("matrix"), func() {
	var rules *matrix.Matrix
	BeforeEach(func() {
		rules = must(matrix.Read(".."))
	})

	It("has a spec or a reason for every rule, not both, and no label of an unknown rule", func() {
		Expect(rules.Problems()).To(BeEmpty())
	})

	It("matches the generated pages", func() {
		for _, page := range must(rules.Pages()) {
			written := must(os.ReadFile("../" + page.Path))
			Expect(string(written) == page.Text).To(BeTrue(), page.Path+" has drifted: go run ./features/matrix/write")
		}
	})
})

package features_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// law lists which packages of the module some packages may import, and what they may never import.
// Patterns are those of Go: "a/..." is a and everything below it.
type law struct {
	of, may, never []string
}

// The domain imports only itself, a use case the domain, an adapter the domain, the use cases,
// adapters/internal and its own folder, and bootstrap all of these. The specs stand outside: they
// import what a host imports. The first law that matches the package holds.
var laws = []law{
	{of: []string{"."}}, // the documentation of the module
	{of: []string{"domain/..."}, may: []string{"domain/..."},
		never: []string{"net/http/...", "encoding/json/...", "crypto/rand", "math/rand/...", library}},
	{of: []string{"application/..."}, may: []string{"domain/...", "application/..."},
		never: []string{"net/http/...", "encoding/json/..."}},
	{of: []string{"adapters/..."}, may: []string{"domain/...", "application/...", "adapters/internal/..."}},
	{of: []string{"bootstrap/cmd/..."}, may: []string{"bootstrap/cli"}},
	{of: []string{"bootstrap/demosite"}, may: []string{"domain/oauth"}}, // a site of somebody else
	{of: []string{"bootstrap/..."}, may: []string{"domain/...", "application", "adapters/...", "bootstrap/..."}},
	{of: []string{"docs/elsewhere"}}, // a site of somebody else
	{of: []string{"features/storespec/..."}, may: []string{"domain/...", "features/..."}},
	{of: []string{"features/interop/fixtures"}, may: []string{"bootstrap", "domain/oauth", "adapters/persistence"}},
	{of: []string{"features/..."}, may: []string{"features/..."}},
	{of: []string{"bench/server/guarded"}, // a site, so limited to the packages of a site
		may: []string{"bench/...", "bootstrap", "domain/oauth", "adapters/persistence"}},
	{of: []string{"bench/..."}, may: []string{"bench/...", "domain/...", "application", "adapters/persistence/...",
		"bootstrap", "bootstrap/service"}},
}

// library stands for every package outside of the module and the standard library.
const library = "a library"

// programs are the only folders with a main function.
var programs = []string{"bootstrap/cmd/...", "docs/elsewhere",
	"features/attacks", "features/conformance", "features/laws/measure",
	"features/matrix/write", "features/mutations", "features/newcomer", "features/interop/fixtures",
	"features/interop/goclient", "bench", "bench/server/..."}

// Tests next to the code may use whatever they need.
var testLaws = []law{
	{of: []string{"features"}, may: []string{"bootstrap/...", "features/...", "adapters/audit", "domain/audit",
		"adapters/persistence",        // of a Go host
		"domain/oauth", "domain/seal", // an attacker with the server secret makes tokens as the server does
		"domain/quota"}},
	{of: []string{"features/storespec"}, may: []string{"domain/...", "features/..."}},
	{of: []string{"..."}, may: []string{"domain/...", "application", "adapters/...", "bootstrap/...", "features/...",
		"bench/..."}},
}

var _ = Describe("Keeping the architecture", Label("architecture"), func() {
	It("imports only what the laws allow", func() {
		files := sources("..", "../bench")
		Expect(files).To(ContainElement(WithTransform(func(s source) string { return s.file }, Equal("bench/main.go"))))
		Expect(len(files)).To(BeNumerically(">", 80))
		for _, file := range files {
			Expect(file.breaches()).To(BeEmpty())
		}
	})

	It("describes every package of the product in ARCHITECTURE.md", func() {
		text := must(os.ReadFile("../ARCHITECTURE.md"))
		for _, file := range sources("..") {
			folder := path.Dir(file.file)
			if product, _, _ := strings.Cut(folder, "/"); product != "features" {
				Expect(string(text)).To(MatchRegexp("`[^`]*\\b%s\\b[^`]*`", path.Base(folder)), folder)
			}
		}
	})

	It("links nothing into a host that only the service needs", func(ctx SpecContext) {
		linked := must(exec.CommandContext(ctx, "go", "list", "-deps", module+"bootstrap").Output())
		packages := strings.Fields(string(linked))
		Expect(packages).To(ContainElement(module + "domain/oauth"))
		heavy := regexp.MustCompile(
			"grpc|otlp|opentelemetry|prometheus|cobra|yaml|bootstrap/(service|cli|settings|demosite)|" +
				"adapters/(persistence|certificates)")
		Expect(slices.DeleteFunc(packages, func(name string) bool { return !heavy.MatchString(name) })).To(BeEmpty())
	})

	It("lets the linker remove unused methods: no package looks up methods by variable names", func() {
		needs := BuildBinary().Needs()
		Expect(needs).To(ContainSubstring("main.main"))
		Expect(regexp.MustCompile(`.*<ReflectMethod>.*`).FindAllString(needs, -1)).To(BeEmpty())
	})

	It("does not link a database server's driver into a host with a SQLite store", func(ctx SpecContext) {
		linked := must(exec.CommandContext(ctx, "go", "list", "-deps", module+"adapters/persistence").Output())
		packages := strings.Fields(string(linked))
		Expect(packages).To(ContainElement(module + "adapters/persistence/internal/drivers"))
		Expect(packages).NotTo(ContainElement(MatchRegexp("pgx|go-sql-driver|gorm.io/driver/(postgres|mysql)")))
	})

	It("runs all specs: every folder with specs has a suite", func() {
		ran := map[string]bool{}
		for _, file := range sources("..") {
			folder := path.Dir(file.file)
			if slices.Contains(file.calls, "Describe") {
				ran[folder] = ran[folder] || false
			}
			if slices.ContainsFunc(file.uses, func(used string) bool {
				return strings.HasPrefix(used, module+"features/suite.Run")
			}) {
				ran[folder] = true
			}
		}
		Expect(len(ran)).To(BeNumerically(">", 10))
		for folder, hasSuite := range ran {
			Expect(hasSuite).To(BeTrue(), folder+" runs no specs")
		}
	})

	It("documents each package", func() {
		said := map[string]bool{}
		for _, file := range sources("..") {
			said[path.Dir(file.file)] = said[path.Dir(file.file)] || file.comment
		}
		Expect(said).To(HaveKey("domain/oauth"))
		for folder, commented := range said {
			Expect(commented).To(BeTrue(), folder+" has no package comment")
		}
	})

	DescribeTable("reports a forbidden import in", func(file string, imports ...string) {
		for _, imported := range imports {
			Expect(source{file: file, imports: []string{imported}}.breaches()).
				To(Equal([]string{file + " imports " + imported}))
		}
	},
		Entry("the domain, of HTTP, JSON, randomness or libraries", "domain/oauth/grant.go", "net/http",
			"net/http/httptest", "encoding/json", "crypto/rand", "math/rand/v2", "golang.org/x/net/idna"),
		Entry("the domain, of its users", "domain/oauth/store.go", "application", "adapters/persistence", "bootstrap",
			"features/storespec"),
		Entry("a use case, of HTTP, JSON or adapters", "application/refresh.go", "net/http", "encoding/json",
			"adapters/http", "bootstrap"),
		Entry("an adapter, of another adapter", "adapters/http/routes.go", "adapters/mcp", "adapters/persistence",
			"adapters/cimd", "bootstrap"),
		Entry("an adapter below a folder, of another adapter", "adapters/mcp/gateway/upstream/upstream.go",
			"adapters/http", "adapters/cimd"),
		Entry("an adapter, of one whose name begins alike", "adapters/http/routes.go", "adapters/httpx"),
		Entry("the product, of its own specs", "bootstrap/app.go", "features/storespec", "bench/load"),
		Entry("the product, of the test kit", "bootstrap/service/service.go", "bootstrap/pasteporttest"),
		Entry("a feature spec, of internals", "features/token_refresh_test.go", "application",
			"adapters/persistence/sqlite", "domain/access"),
	)

	DescribeTable("reports", func(file source, breach string) {
		Expect(file.breaches()).To(Equal([]string{breach}))
	},
		Entry("a clock in the domain",
			source{file: "domain/oauth/grant.go", imports: []string{"time"}, uses: []string{"time.Now"}},
			"domain/oauth/grant.go uses time.Now"),
		Entry("a second program", source{file: "bootstrap/tool.go", clause: "main"}, "bootstrap/tool.go is a program"),
		Entry("a folder outside the laws", source{file: "util/strings.go"}, "util/strings.go has no law"),
	)

	It("resolves renamed imports", func() {
		root := GinkgoT().TempDir()
		Expect(os.MkdirAll(filepath.Join(root, "domain", "oauth"), 0o700)).To(Succeed())
		text := "package oauth\n\nimport (\n\tclock \"time\"\n\twire \"" + module +
			"adapters/http\"\n)\n\nvar now, w = clock.Now(), wire.New\n"
		Expect(os.WriteFile(filepath.Join(root, "domain", "oauth", "x.go"), []byte(text), 0o600)).To(Succeed())
		Expect(sources(root)).To(HaveLen(1))
		Expect(sources(root)[0].breaches()).
			To(ConsistOf("domain/oauth/x.go imports adapters/http", "domain/oauth/x.go uses time.Now"))
		Expect(sources(root)[0].comment).To(BeFalse())
	})
})

// clocks are the functions that the domain must not call, because it takes the time as an argument.
var clocks = []string{"time.Now", "time.Since", "time.Until", "time.After", "time.Tick"}

func (s source) breaches() (found []string) {
	folder := path.Dir(s.file)
	applied := laws
	if s.isTest() {
		applied = testLaws
	}
	holds := slices.IndexFunc(applied, func(l law) bool { return fits(l.of, folder) })
	if holds < 0 {
		return []string{s.file + " has no law"}
	}
	for _, imported := range s.imports {
		if !applied[holds].allows(folder, imported) || imported == "bootstrap/pasteporttest" && !s.isTest() {
			found = append(found, s.file+" imports "+imported)
		}
	}
	for _, used := range s.uses {
		if !s.isTest() && fits([]string{"domain/..."}, s.file) && slices.Contains(clocks, used) {
			found = append(found, s.file+" uses "+used)
		}
	}
	if s.clause == "main" && !fits(programs, folder) {
		found = append(found, s.file+" is a program")
	}
	return found
}

// allows reports whether a package in the folder may import another. Adapters may import their own
// folder, the first below adapters/.
func (l law) allows(folder, imported string) bool {
	switch {
	case fits(l.never, imported):
		return false
	case !isOurs(imported):
		return isStandard(imported) || !slices.Contains(l.never, library)
	}
	parts := strings.Split(folder, "/")
	if parts[0] != "adapters" {
		return fits(l.may, imported)
	}
	own := strings.Join(parts[:2], "/")
	return fits(l.may, imported) || fits([]string{own + "/..."}, imported)
}

func fits(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		above, tree := strings.CutSuffix(pattern, "...")
		return pattern == name || tree && strings.HasPrefix(name+"/", above)
	})
}

// isStandard reports whether a package is in the standard library: the first element of its path
// has no dot.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// isOurs reports whether a package is in this module; its path has lost the name of the module.
func isOurs(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return slices.Contains([]string{"domain", "application", "adapters", "bootstrap", "features", "bench"}, first)
}

package features_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
)

// surroundings are what the code of the pages names without declaring it, as parameters.
const surroundings = `adminPages func(chi), answer func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error),
	ada *pasteporttest.Connection, authz *bootstrap.OAuthServer, ctx context.Context, e *echo.Echo,
	gin interface{ WrapH(http.Handler) any }, logger *slog.Logger, mux *http.ServeMux, r, router chi,
	server *bootstrap.MCPServer, site host, store *persistence.Store, t *testing.T, tools *mcp.Server, userID string`

// hosts is the code of a site that the pages show parts of.
const hosts = `type host struct{ *pasteporttest.Site }

func (host) Knows(string) bool { return false }

type title struct{ Title string }

type chi interface {
	Route(string, func(chi))
	Handle(string, http.Handler)
	NotFound(http.HandlerFunc)
	NoRoute(any)
}

func libraryConfig() (config oauth.Config)                                                { return }
func newLibrary(*testing.T, oauth.Config, ...bootstrap.OAuthOption) (library http.Handler) { return }
`

// goPackages are the packages that the pages use, by their names.
var goPackages = map[string]string{
	"audit":         "github.com/pasteport/pasteport/adapters/audit",
	"bootstrap":     "github.com/pasteport/pasteport/bootstrap",
	"cimd":          "github.com/pasteport/pasteport/adapters/cimd",
	"context":       "context",
	"echo":          "github.com/labstack/echo/v4",
	"errors":        "errors",
	"http":          "net/http",
	"mcp":           "github.com/modelcontextprotocol/go-sdk/mcp",
	"middleware":    "github.com/labstack/echo/v4/middleware",
	"oauth":         "github.com/pasteport/pasteport/domain/oauth",
	"os":            "os",
	"pasteporttest": "github.com/pasteport/pasteport/bootstrap/pasteporttest",
	"persistence":   "github.com/pasteport/pasteport/adapters/persistence",
	"slices":        "slices",
	"slog":          "log/slog",
	"storespec":     "github.com/pasteport/pasteport/features/storespec",
	"testing":       "testing",
	"time":          "time",
}

var (
	goBlock    = regexp.MustCompile("(?ms)^ *```go\n(.*?)^ *```$")
	topLevel   = regexp.MustCompile(`(?m)\A(//.*\n)*(func|type|import) `)
	wholeFile  = regexp.MustCompile(`\Apackage \w+\n`)
	isFields   = regexp.MustCompile(`(?m)\A\w+: `)
	declared   = regexp.MustCompile(`(?m)^(\w+(?:, \w+)*) :=`)
	statement  = regexp.MustCompile(`(?m)^[a-z_]`)
	usePackage = regexp.MustCompile(`\b([a-z]+)\.[A-Z]`)
)

// compilable makes a file of a block. What the block declares counts as used, except for an error
// before the last statement.
func compilable(block string) string {
	if wholeFile.MatchString(block) {
		return wholeFile.ReplaceAllString(block, "package pages\n")
	}
	code := "\nfunc _(" + surroundings + ") error {\n{\n" + block
	last := lastStatement(block)
	for _, names := range declared.FindAllStringSubmatch(block, -1) {
		for name := range strings.SplitSeq(names[1], ", ") {
			isHandled := name != "err" || strings.HasPrefix(last, names[0])
			if isHandled && name != "_" && !strings.HasPrefix(last, "return") {
				code += "_ = " + name + "\n"
			}
		}
	}
	code += "}\nreturn nil\n}\n"
	switch {
	case topLevel.MatchString(block):
		code = "\n" + block
	case isFields.MatchString(block):
		code = "\nvar _ = oauth.Config{\n" + block + "}\n"
	}
	imports := ""
	for name, path := range goPackages {
		if slices.ContainsFunc(usePackage.FindAllStringSubmatch(code, -1), func(used []string) bool {
			return used[1] == name
		}) {
			imports += strconv.Quote(path) + "\n"
		}
	}
	return "package pages\n\nimport (\n" + imports + ")\n" + code
}

func lastStatement(block string) string {
	begins := statement.FindAllStringIndex(block, -1)
	if begins == nil {
		return ""
	}
	return block[begins[len(begins)-1][0]:]
}

// compile returns what the compiler says about files of one package.
func compile(ctx context.Context, files map[string]string) string {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	args := []string{"build", "-o", os.DevNull}
	for name, text := range files {
		args = append(args, filepath.Join(folder, name))
		Expect(os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600)).To(Succeed())
	}
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = repository
	said, _ := command.CombinedOutput()
	return string(said)
}

var _ = Describe("Go code on the pages", Label("documentation"), func() {
	It("compiles", func(ctx SpecContext) {
		files := map[string]string{"hosts.go": compilable(hosts)}
		blocks := 0
		for _, page := range guides() {
			for i, block := range goBlock.FindAllStringSubmatch(textOf(page), -1) {
				if strings.HasPrefix(block[1], "package main") {
					continue // which the next spec runs
				}
				name := strings.TrimSuffix(filepath.Base(page), ".md") + "_block" + strconv.Itoa(i) + ".go"
				files[name] = compilable(block[1])
				blocks++
			}
		}
		Expect(blocks).To(BeNumerically(">", 12))
		Expect(compile(ctx, files)).To(BeEmpty())
		files["wrong.go"] = compilable("bootstrap.NoSuchFunction()\n")
		files["swallowing.go"] = compilable("endpoints, err := server.Handler()\nmux.Handle(\"/\", endpoints)\n")
		Expect(compile(ctx, files)).To(And(ContainSubstring("undefined: bootstrap.NoSuchFunction"),
			ContainSubstring("declared and not used: err")))
	})

	It("is a whole program on docs/embedding.md, which a client can connect to", Label("long"), func(ctx SpecContext) {
		const published = "127.0.0.1:8080"
		address, folder := freeAddress(), GinkgoT().TempDir()
		program := goBlock.FindStringSubmatch(textOf("../docs/embedding.md"))[1]
		Expect(strings.Count(program, published)).To(Equal(2))
		file, binary := filepath.Join(folder, "main.go"), filepath.Join(folder, "site.example")
		write(file, strings.ReplaceAll(program, published, address))
		building := exec.CommandContext(ctx, "go", "build", "-o", binary, file)
		building.Dir = repository
		said, err := building.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(said))
		serving := exec.Command(binary)
		serving.Dir = folder
		site := must(gexec.Start(serving, GinkgoWriter, GinkgoWriter))
		DeferCleanup(func() { site.Kill().Wait(patience) })
		Eventually(site.Out).WithTimeout(patience).Should(gbytes.Say("http server started"))
		world := &World{Issuer: "http://" + address, Token: "my-first-token"}
		session := world.NewRegisteringSDKClient().Connect(ctx, sessions)
		answer := must(session.CallTool(ctx, &mcp.CallToolParams{Name: "greet", Arguments: params{"name": "Ada"}}))
		Expect(answer.Content).To(ConsistOf(HaveField("Text", "Hello Ada")))
	})
})

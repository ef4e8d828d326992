package features_test

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"mvdan.cc/sh/v3/syntax"
)

// typedElsewhere is a row for commands on the pages that a Reader does not run. The words end with
// "…" if others may follow.
type typedElsewhere struct {
	words string
	stage string // of .ci/run, that runs the command or the same program with the same files; "" if none does
	why   string // what the stage runs instead, or why none runs it
	in    string // what the Reader runs in its place; "" for nothing
}

func (t typedElsewhere) instead() string { return cmp.Or(t.in, ":") }

const (
	fromPage  = "from the page"
	internet  = "it sends requests to the Internet"
	noCluster = "the stage validates the manifests without a cluster"
	inPod     = "the Reader runs what a pod runs, with files for the Secrets"
	inPlace   = "pasteport gateway --issuer https://mcp.example.com --upstream http://127.0.0.1:9000/mcp " +
		"--database file:url "
)

var elsewhere = []typedElsewhere{
	{"go build ./bootstrap/cmd/pasteport", "newcomer", fromPage, ""},
	{"./pasteport demo", "newcomer", fromPage, ""},
	{"go test ./...", "test_without_cgo", "also with -count and -timeout", ""},
	{"go test ./features …", "test", "the same specs, among all others", ""},
	{"go test ./... -ginkgo.label-filter D19", "test", "the same specs, among all others", ""},
	{".ci/run …", "", "it would run itself", ""},
	{"go mod init …", "site", fromPage, ""},
	{"go mod edit …", "site", fromPage, ""},
	{"go mod tidy", "site", fromPage, ""},
	{"go build ./...", "site", fromPage, ""},
	{"go install ./bootstrap/cmd/pasteport", "newcomer", "it builds the same package", ""},
	{"npm install @modelcontextprotocol/sdk@1.32.2 zod", "five_minutes", fromPage, ""},
	{"openssl rand -hex 32", "elsewhere", "Node makes the secret", ""},
	{"node docs/elsewhere/server.mjs", "elsewhere", "with another port", ""},
	{"pasteport doctor http://127.0.0.1:3000/mcp …", "elsewhere", "with other ports", ""},
	{"pasteport server …", "elsewhere", "with other settings", ""},
	{"node server.mjs", "five_minutes", "with another port", ""},
	{"node whoami.mjs", "five_minutes", "with another port", ""},
	{"npx -y @notionhq/notion-mcp-server@2.5.2 …", "gateway", fromPage, ""},
	{"npx -y mcp-proxy@6.7.16 …", "gateway", fromPage, ""},
	{"npx -y @modelcontextprotocol/server-everything@2026.8.31 …", "gateway", fromPage, ""},
	{"npx -y @modelcontextprotocol/inspector@2 …", "gateway", "the same line, as the gateway prints it", ""},
	{"npx -y mcp-remote http://127.0.0.1:8080/mcp", "interop", "the version of the lock file", ""},
	{"pasteport clients known", "", internet, ""},
	{"curl http://127.0.0.1:4321/callback?code=…&state=…&iss=…", "", "only an app of the reader answers there", ""},
	{"cosign …", "", "nothing has been released and signed yet", ""},
	{"sha256sum --check --ignore-missing checksums.txt", "release", "without --ignore-missing", ""},
	{"install …", "deployment", fromPage, ""},
	{"useradd …", "deployment", fromPage, ""},
	{"systemctl …", "deployment", fromPage, ""},
	{"journalctl …", "deployment", fromPage, ""},
	{"pasteport health", "deployment", fromPage, ""},
	{"docker run …", "deployment", "the image runs without Docker", ""},
	{"docker compose …", "deployment", "the stage checks the file without Docker", ""},
	{"caddy run --config deploy/Caddyfile", "proxies", "the file, with other ports", ""},
	{"nginx …", "proxies", "the file, with other ports", ""},
	{"kubectl apply --kustomize deploy/kubernetes", "kubernetes", inPod, inPlace + "--server-secret oauth.db.secret"},
	{"kubectl --namespace pasteport get secret …", "kubernetes", inPod, "base64 oauth.db.secret"},
	{"kubectl --namespace pasteport create secret generic pasteport-server-secret --from-file=oauth.db.secret= …",
		"kubernetes", inPod, inPlace + "--server-secret $1"},
	{"kubectl …", "kubernetes", noCluster, ""},
}

// rowOf returns the row of a command.
func rowOf(words []string) *typedElsewhere {
	line := strings.Join(words, " ")
	for i, row := range elsewhere {
		beginning, more := strings.CutSuffix(row.words, " …")
		if line == beginning || more && strings.HasPrefix(line, beginning+" ") {
			return &elsewhere[i]
		}
	}
	return nil
}

// pagesWithCommands returns the pages for people who use or change Pasteport.
func pagesWithCommands() (pages []string) {
	files, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		pages = append(pages, "docs/"+filepath.Base(file))
	}
	return append(pages, "README.md", "SECURITY.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
}

// npmVersion is a package of npm with a version.
var npmVersion = regexp.MustCompile(`(?:npx -y|-- npx -y|npm install) (@?[a-z/-]+)@([0-9.]+)`)

var (
	// usage is the line of the help with the command that the program has understood.
	usage       = regexp.MustCompile(`(?m)^Usage:\n  (pasteport(?: [a-z-]+)*)`)
	subcommands = regexp.MustCompile(`(?m)^(Available )?Commands:$`)
)

var _ = Describe("Commands on the pages", Label("documentation"), func() {
	// understands fails unless the program knows the command and its flags.
	understands := func(ctx SpecContext, page string, words []string) {
		GinkgoHelper()
		line := page + ": " + strings.Join(words, " ")
		args := slices.Clone(words[1:])
		if strings.HasPrefix(args[len(args)-1], "--") {
			args = append(args, "x") // the value that a sentence leaves out, or an argument
		}
		helped := Run(ctx, append(args, "--help")...)
		Expect(helped.Code).To(BeZero(), "%s: %s", line, helped.Err)
		command := usage.FindStringSubmatch(helped.Out)
		Expect(command).NotTo(BeNil(), line+helped.Out)
		known := strings.Fields(command[1])[1:]
		Expect(len(words)).To(BeNumerically(">", len(known)), line)
		Expect(words[1:len(known)+1]).To(Equal(known), line)
		isGroup := len(known) == 0 || subcommands.MatchString(helped.Out)
		if isGroup && len(words) > len(known)+1 {
			Expect(words[len(known)+1]).To(Or(HavePrefix("--"), Equal("COMMAND")), line+" is not a command")
		}
	}

	It("are run here, or stand in the table with the stage that runs them", func(ctx SpecContext) {
		used, checked := map[string]bool{}, 0
		for _, page := range pagesWithCommands() {
			blocks, others := shellBlocks(page)
			for _, block := range blocks {
				eachCommand(parseShell(block.Text, page), func(_ *syntax.CallExpr, words []string) {
					checked++
					row := rowOf(words)
					if row != nil {
						used[row.words] = true
					} else {
						Expect(isPasteport(words[0]) || slices.Contains(ordinaryPrograms, words[0])).
							To(BeTrue(), "%s:%d: %q is not run by anything", page, block.Line, words)
					}
					if isPasteport(words[0]) {
						understands(ctx, page, words)
					}
				})
			}
			for _, block := range others {
				Expect(block).NotTo(MatchRegexp(`(?m)^\s*(\$ |(\./)?pasteport )`), page+": mark the block as sh")
			}
		}
		Expect(checked).To(BeNumerically(">", 100))
		stages := textOf("../.ci/run")
		for _, row := range elsewhere {
			Expect(used).To(HaveKey(row.words), "no page has the command")
			Expect(row.why).NotTo(BeEmpty(), row.words)
			Expect(row.stage == "" || strings.Contains(stages, "\nstage_"+row.stage+"() ")).To(BeTrue(), row.words)
		}
	})

	It("are known to the program in sentences and tables too", func(ctx SpecContext) {
		checked := 0
		for _, page := range pagesWithCommands() {
			text := fence.ReplaceAllString(textOf(filepath.Join(repository, page)), "")
			for _, code := range inlineCode.FindAllStringSubmatch(text, -1) {
				eachCommand(parseShell(strings.ReplaceAll(code[1], "\n", " "), page),
					func(_ *syntax.CallExpr, words []string) {
						if isPasteport(words[0]) {
							checked++
							understands(ctx, page, words)
						}
					})
			}
		}
		Expect(checked).To(BeNumerically(">", 50))
	})

	It("install the versions of npm packages that .ci/run installs", func() {
		var locked struct {
			Packages map[string]struct{ Version string }
		}
		Expect(json.Unmarshal([]byte(textOf("interop/package-lock.json")), &locked)).To(Succeed())
		checked := 0
		for _, page := range pagesWithCommands() {
			for _, named := range npmVersion.FindAllStringSubmatch(textOf(filepath.Join(repository, page)), -1) {
				if strings.HasPrefix(named[1], "@example/") {
					continue
				}
				checked++
				version := locked.Packages["node_modules/"+named[1]].Version
				Expect(version+".").To(HavePrefix(named[2]+"."), page+": "+named[0])
			}
		}
		Expect(checked).To(BeNumerically(">", 8))
	})

	It("may filter the specs of every package: each package with tests has the flags of Ginkgo", func() {
		checked := 0
		for _, folder := range foldersOfCode() {
			tests := must(filepath.Glob(filepath.Join("..", folder, "*_test.go")))
			if len(tests) == 0 || strings.HasPrefix(folder, "bench") {
				continue
			}
			checked++
			Expect(slices.ContainsFunc(tests, func(file string) bool {
				return strings.Contains(textOf(file), `"github.com/onsi/ginkgo/v2"`)
			})).To(BeTrue(), folder)
		}
		Expect(checked).To(BeNumerically(">", 30))
	})

	for _, page := range pagesWithCommands() {
		withDatabase := slices.Contains([]string{"docs/operating.md", "docs/replicas.md"}, page)
		labels := Label("long")
		if withDatabase {
			labels = Label("long", "engines")
		}
		It("work as they stand in "+page, labels, func(ctx SpecContext) {
			blocks, _ := shellBlocks(page)
			if len(blocks) == 0 {
				Skip("the page has no commands")
			}
			reader := NewReader(withDatabase)
			for _, block := range blocks {
				reader.Type(ctx, block)
			}
			if page == "docs/replicas.md" {
				next, both := strings.Split(textOf("next"), "\n"), strings.Split(textOf("both"), "\n")
				next[0], next[1] = next[1], next[0]
				Expect(both).To(Equal(next), "the old secret seals, and all pods can open what the new one seals")
			}
		})
	}
})

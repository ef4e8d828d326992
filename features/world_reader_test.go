package features_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/pasteport/pasteport/bootstrap/cli"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// ShellBlock is a block of commands on a page. Section is the text of the page from the heading
// above the block to the block.
type ShellBlock struct {
	Page    string
	Line    int
	Section string
	Text    string
}

// repository is the root of the repository, also after a spec has changed the working folder.
var repository = filepath.Dir(filepath.Dir(settingsPage))

var (
	fence          = regexp.MustCompile("(?ms)^( *)```([^\n]*)\n(.*?)^ *```$")
	inlineCode     = regexp.MustCompile("`((?:\\./)?pasteport [^`]+)`")
	readsPasteport = regexp.MustCompile(`(?m)--config pasteport\.yaml|clients known|^pasteport gateway --dev$`)
	yamlBlock      = regexp.MustCompile("(?ms)^```yaml[^\n]*\n(.*?)^```$")
)

// shellBlocks returns the blocks of shell commands on a page, and the text of all other blocks.
func shellBlocks(page string) (blocks []ShellBlock, others []string) {
	GinkgoHelper()
	text := textOf(filepath.Join(repository, page))
	for _, at := range fence.FindAllStringSubmatchIndex(text, -1) {
		indent, language, code := text[at[2]:at[3]], text[at[4]:at[5]], text[at[6]:at[7]]
		code = strings.TrimPrefix(strings.ReplaceAll("\n"+code, "\n"+indent, "\n"), "\n")
		language, _, _ = strings.Cut(language, " ")
		if !slices.Contains([]string{"sh", "bash", "shell", "console"}, language) {
			others = append(others, code)
			continue
		}
		begin := max(strings.LastIndex(text[:at[0]], "\n## "), 0)
		blocks = append(blocks, ShellBlock{page, strings.Count(text[:at[0]], "\n") + 1, text[begin:at[0]], code})
	}
	return blocks, others
}

// parseShell parses commands.
func parseShell(text, name string) *syntax.File {
	GinkgoHelper()
	file, err := syntax.NewParser().Parse(strings.NewReader(text), name)
	Expect(err).NotTo(HaveOccurred(), text)
	return file
}

// unexpanded leaves out what depends on the output of other commands.
var unexpanded = &expand.Config{
	CmdSubst:  func(io.Writer, *syntax.CmdSubst) error { return nil },
	ProcSubst: func(*syntax.ProcSubst) (string, error) { return os.DevNull, nil },
}

// eachCommand calls visit for each program that the commands start, with its words. It leaves out
// sudo, the builtins of the shell and the functions that the commands declare.
func eachCommand(file *syntax.File, visit func(call *syntax.CallExpr, words []string)) {
	GinkgoHelper()
	declared := map[string]bool{}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.FuncDecl:
			declared[node.Name.Value] = true
		case *syntax.CallExpr:
			var words []string
			for _, word := range node.Args {
				words = append(words, must(expand.Literal(unexpanded, word)))
			}
			words = withoutSudo(words)
			if len(words) > 0 && !declared[words[0]] && !interp.IsBuiltin(words[0]) {
				visit(node, words)
			}
		}
		return true
	})
}

// withoutSudo returns the command that sudo runs.
func withoutSudo(words []string) []string {
	if len(words) > 0 && words[0] == "sudo" {
		words = words[1:]
		if words[0] == "-u" {
			words = words[2:]
		}
	}
	return words
}

// ordinaryPrograms are those that a Reader runs as they are.
var ordinaryPrograms = []string{"base64", "cat", "cp", "head", "mkdir", "sed", "tee"}

func isPasteport(program string) bool { return program == "pasteport" || program == "./pasteport" }

// Reader types the commands of a page into a shell in an empty folder. Pasteport runs in this
// process, beside a demo site with connections. Examples on the page for something that each reader
// has are replaced, such as the address of the server.
type Reader struct {
	dir      string
	world    *World
	client   *Client
	upstream *UpstreamServer
	database string
	typed    int
	stdin    *os.File
}

// NewReader starts the MCP server and the demo site of a reader; withDatabase also starts
// PostgreSQL.
func NewReader(withDatabase bool) *Reader {
	GinkgoHelper()
	r := &Reader{dir: workingFolder()}
	r.upstream = NewUpstreamReading(func(q *http.Request) string {
		key := bearerOf(q)
		if own, err := os.ReadFile("upstream-secret"); err == nil && strings.TrimSpace(string(own)) == key {
			return apiKey
		}
		return key
	}, apiKey)
	for _, folder := range []string{"docs", "deploy"} {
		Expect(os.Symlink(filepath.Join(repository, folder), folder)).To(Succeed())
	}
	for _, folder := range []string{"etc", "run/secrets", "var/lib", "var/log/pasteport"} {
		Expect(os.MkdirAll(folder, 0o700)).To(Succeed())
	}
	r.world = NewWorld(func(c *service.Config) {
		c.Audit = service.AuditConfig{File: filepath.Join(r.dir, "var/log/pasteport/calls.jsonl")}
	})
	r.client = r.world.NewClient()
	Expect(os.Symlink(r.world.Dir, "var/lib/pasteport")).To(Succeed())
	Expect(os.Symlink(r.world.Dir, "pasteport-data")).To(Succeed())
	write("leaked.txt", r.world.Token+"\n")
	write("token.txt", r.world.Token+"\n")
	secret := serverSecret(r.world)
	write("run/secrets/oauth.db.secret", secret)
	if withDatabase {
		r.database = databaseServers["PostgreSQL"].database()
		write("run/secrets/database", databaseServers["PostgreSQL"].database())
	}
	GinkgoT().Setenv("PASTEPORT_ADDR", "127.0.0.1:0")
	GinkgoT().Setenv("PASTEPORT_ADMIN_ADDR", "off")
	r.stdin = must(os.Open(os.DevNull))
	DeferCleanup(r.stdin.Close)
	return r
}

// connect makes two people use their apps, and returns what stands for the examples of the pages.
func (r *Reader) connect(ctx context.Context) *strings.Replacer {
	GinkgoHelper()
	tokens := r.client.Connect(ctx)
	r.world.Call(ctx, tokens.Access)
	r.client.ConnectAs(ctx, r.world.TokenFor(ctx, "ada", "author"))
	grant := slices.IndexFunc(r.world.Grants(ctx), func(g operatorsGrant) bool { return g.Subject == "editor" })
	var attempts []struct{ ID string }
	Eventually(func() []struct{ ID string } {
		Expect(json.Unmarshal([]byte(Run(ctx, "connections", "--json", "--data", r.world.Dir).Out), &attempts)).
			To(Succeed())
		return attempts
	}).WithContext(ctx).WithTimeout(patience).ShouldNot(BeEmpty())
	audited := must(os.ReadFile(filepath.Join(r.dir, "var/log/pasteport/calls.jsonl")))
	write(filepath.Join(r.dir, "calls.jsonl.1"), string(audited))
	hashes := regexp.MustCompile(`"hash":"(\w+)"`).FindAllStringSubmatch(string(audited), -1)
	upstream := strings.TrimPrefix(r.upstream.URL, "http://")
	return strings.NewReplacer(
		"https://cms.example.com/mcp", r.world.MCP(),
		"https://mcp.example.com/mcp", r.world.MCP(),
		"http://127.0.0.1:8080/mcp", r.world.MCP(),
		"127.0.0.1:9000", upstream,
		"127.0.0.1:9001", upstream,
		"tools:9000", upstream,
		"https://client.example/mcp.json", r.client.ID,
		"client.example", hostOf(r.client.ID),
		"--scopes articles:read", "--scopes mcp",
		"5f0c29", r.world.Grants(ctx)[grant].ID,
		"5f0c", attempts[0].ID,
		"91d2…", hashes[len(hashes)-1][1],
		"my-first-key", r.world.Token,
		"postgres://pasteport:password@db.internal/pasteport", r.database,
		"postgres://pasteport:PASSWORD@postgres.database/pasteport?sslmode=verify-full", r.database,
		"/etc/pasteport", filepath.Join(r.dir, "etc/pasteport"),
		"/run/secrets", filepath.Join(r.dir, "run/secrets"),
		"/var/lib/pasteport", r.world.Dir,
		"/var/log/pasteport", filepath.Join(r.dir, "var/log/pasteport"),
	)
}

// Type runs the commands of a block. Commands that the table lists are replaced.
func (r *Reader) Type(ctx context.Context, block ShellBlock) {
	GinkgoHelper()
	file := parseShell(block.Text, block.Page)
	eachCommand(file, func(call *syntax.CallExpr, words []string) {
		if row := rowOf(words); row != nil {
			instead := parseShell(row.instead(), block.Page).Stmts[0].Cmd.(*syntax.CallExpr)
			call.Args = instead.Args
		}
	})
	var text bytes.Buffer
	Expect(syntax.NewPrinter().Print(&text, file)).To(Succeed())
	own := r.connect(ctx)
	r.configure(block, own)
	if strings.Contains(block.Text, "gateway ") && strings.Contains(block.Text, "--data ") {
		r.world.Stop() // because only one service runs on a folder
		defer r.world.Restart()
	}
	file = parseShell(own.Replace(text.String()), block.Page)
	said := &Log{}
	runner, err := interp.New(
		interp.Dir(r.dir), interp.StdIO(r.stdin, said, said), interp.Params("-e", "-u", "-o", "pipefail"),
		interp.CallHandler(func(_ context.Context, words []string) ([]string, error) {
			if words[0] == "umask" { // which the interpreter lacks
				before := syscall.Umask(0o077)
				DeferCleanup(func() { syscall.Umask(before) })
				return []string{"true"}, nil
			}
			return withoutSudo(words), nil
		}),
		interp.ExecHandlers(func(run interp.ExecHandlerFunc) interp.ExecHandlerFunc {
			return func(ctx context.Context, words []string) error {
				switch {
				case isPasteport(words[0]):
					return r.pasteport(ctx, words[1:])
				case slices.Contains(ordinaryPrograms, words[0]):
					return run(ctx, words)
				}
				return fmt.Errorf("%q is not run here, and not in the table", words)
			}
		}))
	Expect(err).NotTo(HaveOccurred())
	Expect(runner.Run(ctx, file)).To(Succeed(), "%s:%d:\n%s\nprinted:\n%s", block.Page, block.Line, block.Text, said)
}

// configure writes the settings that the page shows above the block, or else first, if the block
// reads them.
func (r *Reader) configure(block ShellBlock, own *strings.Replacer) {
	GinkgoHelper()
	shown := yamlBlock.FindAllStringSubmatch(block.Section, -1)
	if shown == nil {
		shown = yamlBlock.FindAllStringSubmatch(textOf(filepath.Join(repository, block.Page)), 1)
	}
	file := filepath.Join(r.dir, "pasteport.yaml")
	Expect(os.RemoveAll(file)).To(Succeed())
	if readsPasteport.MatchString(block.Text) {
		settings := "dev: true\nissuer: " + r.world.Issuer + "\n"
		if shown != nil {
			settings += own.Replace(shown[len(shown)-1][1])
		}
		write(file, settings)
	}
}

// pasteport runs a command of the program to its end, or until it serves.
func (r *Reader) pasteport(ctx context.Context, args []string) error {
	shell := interp.HandlerCtx(ctx)
	if err := os.Chdir(shell.Dir); err != nil {
		return err
	}
	shell.Env.Each(func(name string, value expand.Variable) bool {
		if strings.HasPrefix(name, "PASTEPORT_") && os.Getenv(name) != value.String() {
			GinkgoT().Setenv(name, value.String())
		}
		return true
	})
	if slices.Contains([]string{"gateway", "serve"}, args[0]) {
		return r.serve(ctx, shell, args)
	}
	in := shell.Stdin
	if in == io.Reader(r.stdin) {
		in = strings.NewReader(r.answer(args[0]))
	}
	if args[0] == "doctor" { // instead of the authorities of the system
		args = append(args, "--ca", Trust(r.world.Clients.server))
	}
	if code := cli.Run(ctx, args, io.NopCloser(in), shell.Stdout, shell.Stderr); code != 0 {
		return fmt.Errorf("pasteport %q: exit code %d", args, code)
	}
	return nil
}

func (r *Reader) answer(command string) string {
	if command == "grants" {
		return "yes\n"
	}
	r.typed++
	return fmt.Sprintf("a-long-key-of-person-%d\n", r.typed)
}

// serve starts a gateway, and stops it when it has said what it found out about its server.
func (r *Reader) serve(ctx context.Context, shell interp.HandlerContext, args []string) error {
	running, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if !slices.Contains(args, "--data") {
		args = append(args, "--data", GinkgoT().TempDir())
	}
	out, ended, code := gbytes.NewBuffer(), make(chan struct{}), 0
	defer out.CancelDetects()
	go func() {
		defer close(ended)
		code = cli.Run(running, args, io.NopCloser(r.stdin), out, shell.Stderr)
	}()
	select {
	case <-out.Detect("upstream http.*: .*\n"):
		stop()
	case <-ended:
	}
	<-ended
	said := string(out.Contents())
	credential := slices.Contains(args, "--credential") || slices.Contains(args, "--config")
	if code != 0 || !strings.Contains(said, "\nupstream http") && !credential {
		return fmt.Errorf("pasteport %q: exit code %d\n%s", args, code, said)
	}
	return nil
}

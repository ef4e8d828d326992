package features_test

import (
	"context"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
)

const tokenVariable = "PASTEPORT_DEMO_TOKEN"

// Binary is the built program.
type Binary string

// Command prepares a run, without the program's variables of the tester's environment.
func (b Binary) Command(environment []string, args ...string) *exec.Cmd {
	command := exec.Command(string(b), args...)
	command.Env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, tokenVariable+"=")
	}), environment...)
	return command
}

// Run starts the program; it ends with the spec.
func (b Binary) Run(environment []string, args ...string) *gexec.Session {
	GinkgoHelper()
	session := must(gexec.Start(b.Command(environment, args...), GinkgoWriter, GinkgoWriter))
	DeferCleanup(func() { session.Kill().Wait(patience) })
	return session
}

// Site is a run of "serve" that trusts a client site.
type Site struct {
	*World
	*gexec.Session
}

func (s *Site) Admin() string {
	GinkgoHelper()
	Eventually(s.Out.Contents).WithTimeout(patience).
		Should(MatchRegexp(`readiness and metrics for you: http://[^/]+/\n`))
	_, rest, _ := strings.Cut(string(s.Out.Contents()), "metrics for you: ")
	address, _, _ := strings.Cut(rest, "/\n")
	return address
}

// Ready returns the readiness of the service.
func (s *Site) Ready(ctx context.Context) Response {
	GinkgoHelper()
	return (&Operated{Admin: s.Admin()}).AskAdmin(ctx, "/readyz")
}

// Serve starts the demo site on a free port and waits until it serves.
func (b Binary) Serve(clients *ClientSite, dir string, environment ...string) *Site {
	GinkgoHelper()
	return b.ServeWithAdmin("off", clients, dir, environment...)
}

// ServeWithAdmin is Serve with an admin listener.
func (b Binary) ServeWithAdmin(admin string, clients *ClientSite, dir string, environment ...string) *Site {
	GinkgoHelper()
	run := b.Run(append([]string{"SSL_CERT_FILE=" + clients.Certificate()}, environment...),
		"serve", "--dev", "--addr", "127.0.0.1:0", "--admin-addr", admin, "--data", dir)
	Eventually(run.Out).WithTimeout(patience).Should(gbytes.Say(`serving (http://127\.0\.0\.1:\d+) on`))
	_, rest, _ := strings.Cut(string(run.Out.Contents()), "serving ")
	issuer, _, _ := strings.Cut(rest, " ")
	return &Site{&World{Issuer: issuer, Dir: dir, Clients: clients}, run}
}

// Certificate returns a file with the site's certificate. The spec is skipped on systems where Go
// does not read CA files.
func (s *ClientSite) Certificate() string {
	GinkgoHelper()
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		Skip("Go reads no SSL_CERT_FILE on " + runtime.GOOS)
	}
	file := filepath.Join(GinkgoT().TempDir(), "roots.pem")
	Expect(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw}),
		0o600)).To(Succeed())
	return file
}

// shown returns the token that the first start prints.
func shown(run *gexec.Session) string {
	_, rest, _ := strings.Cut(string(run.Out.Contents()), "demo token: ")
	token, _, _ := strings.Cut(rest, "\n")
	return token
}

func filesIn(dir string) (names []string) {
	GinkgoHelper()
	for _, entry := range must(os.ReadDir(dir)) {
		names = append(names, entry.Name())
	}
	return names
}

var _ = Describe("Running the binary", func() {
	var binary Binary
	BeforeEach(func() { binary = BuildBinary() })

	Context("as a service", func() {
		var clients *ClientSite
		var dir string
		BeforeEach(func() { clients, dir = NewClientSite(), filepath.Join(GinkgoT().TempDir(), "site") })

		It("prints the editor's token on the first start only, and keeps accepting it", func(ctx SpecContext) {
			first := binary.Serve(clients, dir)
			token := shown(first.Session)
			Expect(token).To(HavePrefix("demo_"))
			Expect(strings.Count(string(first.Out.Contents()), "demo token:")).To(Equal(1))
			Eventually(first.Terminate()).WithTimeout(patience).Should(gexec.Exit(0))

			second := binary.Serve(clients, dir)
			Expect(string(second.Out.Contents())).NotTo(ContainSubstring("demo token"))
			access := second.NewClient().ConnectAs(ctx, token).Access
			Expect(second.Converse(ctx, stateless, access).Ask(ctx, "tools/list", params{}).Tools()).
				To(ConsistOf(editorTools))
			for _, run := range []*Site{first, second} {
				Expect(string(run.Err.Contents())).NotTo(Or(ContainSubstring(token), ContainSubstring(access)))
			}
		})

		It("takes the editor's token from "+tokenVariable+" and does not print it", func(ctx SpecContext) {
			site := binary.Serve(clients, dir, tokenVariable+"=chosen-by-the-editor")
			Expect(site.NewClient().ConnectAs(ctx, "chosen-by-the-editor").Access).To(HavePrefix("ppa_"))
			Expect(string(site.Out.Contents()) + string(site.Err.Contents())).
				NotTo(ContainSubstring("chosen-by-the-editor"))
		})

		DescribeTable("ends open streams at SIGTERM and exits with code 0", func(ctx SpecContext, revision string) {
			site := binary.Serve(clients, dir, tokenVariable+"=chosen-by-the-editor")
			talk := site.Converse(ctx, revision, site.NewClient().ConnectAs(ctx, "chosen-by-the-editor").Access)
			stream := talk.Listen(ctx)
			Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(editorTools))
			site.Terminate()
			Eventually(stream.Events).WithTimeout(patience).Should(BeClosed())
			Eventually(site.Session).WithTimeout(patience).Should(gexec.Exit(0))
		}, revisions(httpSSE, sessions))

		It("exits with code 0 even if a client never finishes its request", Label("long"), func(ctx SpecContext) {
			site := binary.Serve(clients, dir)
			hung := must(net.Dial("tcp", strings.TrimPrefix(site.Issuer, "http://")))
			DeferCleanup(hung.Close)
			Expect(io.WriteString(hung, "POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Type: "+
				"application/x-www-form-urlencoded\r\nContent-Length: 10\r\n\r\nx")).Error().NotTo(HaveOccurred())
			client := site.NewClient()
			// The unfinished request is being read by now.
			Expect(client.AskFor(ctx, client.Request()).StatusCode).To(Equal(http.StatusOK))
			site.Terminate()
			Eventually(site.Session).WithTimeout(patience).Should(gexec.Exit(0))
			Expect(filesIn(dir)).NotTo(ContainElement(HaveSuffix("-wal")), "both databases are closed")
		})

		DescribeTable("refuses more than 32 KiB of headers", func(ctx SpecContext, bytes, status int) {
			site := binary.Serve(clients, dir)
			r := must(http.NewRequestWithContext(ctx, http.MethodGet,
				site.Issuer+"/.well-known/oauth-authorization-server", http.NoBody))
			r.Header.Set("X-Large", strings.Repeat("x", bytes))
			Expect(Send(r).StatusCode).To(Equal(status))
		},
			Entry("and accepts less", 30<<10, http.StatusOK),
			Entry("with 431", 40<<10, http.StatusRequestHeaderFieldsTooLarge),
		)

		It("uses the system's CAs for client sites", Label("C41"), func(ctx SpecContext) {
			client := binary.Serve(clients, dir, "SSL_CERT_FILE="+os.DevNull).NewClient()
			Expect(client.AskFor(ctx, client.Request())).To(BeAPage(http.StatusBadGateway, "invalid_client"))
		})

		DescribeTable("prints the operator's URLs", Label("operations"), func(host func() string, says string) {
			run := binary.Run(nil, "serve", "--dev", "--addr", "127.0.0.1:0", "--admin-addr",
				net.JoinHostPort(host(), "0"), "--data", dir)
			Eventually(run.Out).WithTimeout(patience).Should(gbytes.Say(says))
		},
			Entry("on loopback", func() string {
				return "127.0.0.1"
			}, `grants, connections, readiness and metrics for you: http://127\.0\.0\.1:\d+/\n`),
			Entry("on all addresses", func() string {
				return "0.0.0.0"
			}, `grants, connections, readiness and metrics for you: http://localhost:\d+/\n`),
			Entry("on another address", outside,
				`readiness and metrics for you: http://\S+/readyz and /metrics; connections need an admin-addr on `+
					`loopback\n`),
		)

		DescribeTable("accepts only clients in allow-clients",
			Label("A8", "configuration"), func(ctx SpecContext, hosts string, status int) {
				client := binary.Serve(clients, dir, "PASTEPORT_ALLOW_CLIENTS="+hosts).NewClient()
				Expect(client.AskFor(ctx, client.Request()).StatusCode).To(Equal(status))
			}, Entry("by host, with any port", "claude.ai, 127.0.0.1", http.StatusOK),
			Entry("and no others", "claude.ai", http.StatusForbidden))

		DescribeTable("follows the log settings",
			Label("configuration", "H8"), func(ctx SpecContext, format, level string, expected OmegaMatcher) {
				site := binary.Serve(clients, dir, "PASTEPORT_LOG_FORMAT="+format, "PASTEPORT_LOG_LEVEL="+level)
				site.NewClient().Consent(ctx).Deny(ctx)
				Eventually(site.Terminate()).WithTimeout(patience).Should(gexec.Exit(0))
				Expect(linesWith(string(site.Err.Contents()), "consent_denied")).To(expected)
			},
			Entry("as text", "text", "info", ConsistOf(MatchRegexp(`^time=\S+ level=INFO msg=consent_denied `))),
			Entry("and skips lines below the level", "text", "warn", BeEmpty()),
		)

		It("fails if its port is in use, and creates no files", func() {
			other := must(net.Listen("tcp", "127.0.0.1:0"))
			DeferCleanup(other.Close)
			run := binary.Run(nil, "serve", "--dev", "--addr", other.Addr().String(), "--data", dir)
			Eventually(run).WithTimeout(patience).Should(gexec.Exit(1))
			Expect(string(run.Err.Contents())).To(And(ContainSubstring("listening on "+other.Addr().String()),
				ContainSubstring("choose another with --addr")))
			Expect(dir).NotTo(BeADirectory())
		})

		It("fails if it cannot create its folder", func() {
			Expect(os.WriteFile(dir, nil, 0o600)).To(Succeed())
			run := binary.Run(nil, "serve", "--dev", "--addr", "127.0.0.1:0", "--data",
				filepath.Join(dir, "inside-a-file"))
			Eventually(run).WithTimeout(patience).Should(gexec.Exit(1))
			Expect(string(run.Err.Contents())).
				To(And(ContainSubstring("making the data folder"), ContainSubstring("--data")))
		})
	})

	DescribeTable("refuses", func(code int, complaint string, args ...string) {
		run := binary.Run(nil, append(args, "--data", GinkgoT().TempDir())...)
		Eventually(run).WithTimeout(patience).Should(gexec.Exit(code))
		Expect(string(run.Err.Contents())).To(And(HavePrefix("pasteport: "), ContainSubstring(complaint)))
		Expect(run.Out.Contents()).To(BeEmpty())
	},
		Entry("a service without an issuer", Label("F9"), 1, "add --issuer", "serve", "--addr", "127.0.0.1:0"),
		Entry("--dev with a public issuer", Label("C49"), 1, "https://cms.example.com", "serve", "--dev", "--addr",
			"127.0.0.1:0", "--issuer", "https://cms.example.com"),
		Entry("an unknown flag", 2, "unknown flag: --verbose\nTry: pasteport serve --help", "serve", "--verbose"),
		Entry("an unexpected argument", 2, `unexpected argument: "pasteport serve" takes flags only`, "serve", "now"),
		Entry("a value apart from its switch", 2, `unexpected argument "on": write it as the flag's value, --name=on`,
			"serve", "--dev", "on"),
		Entry("a flag of another command", 2, "unknown flag: --data", "version"),
	)

	DescribeTable("prints the version of the linker with", func(given string) {
		run := binary.Run(nil, given)
		Eventually(run).WithTimeout(patience).Should(gexec.Exit(0))
		Expect(string(run.Out.Contents())).To(Equal("pasteport " + specVersion + "\n"))
		Expect(run.Err.Contents()).To(BeEmpty())
	}, Entry(nil, "version"), Entry(nil, "--version"))
})

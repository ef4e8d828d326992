package features_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
)

var _ = Describe("Starting a gateway", Label("gateway", "configuration"), func() {
	BeforeEach(func() { workingFolder() })
	const one = "--upstream=http://127.0.0.1:9000/mcp"

	DescribeTable("is refused, with the remedy, when", func(ctx SpecContext, remedy string, args ...string) {
		dir := filepath.Join(GinkgoT().TempDir(), "data")
		ran := Run(ctx, append([]string{"gateway", "--dev", "--addr=127.0.0.1:0", "--data=" + dir}, args...)...)
		Expect(ran.Code).To(Equal(1))
		Expect(ran.Err).To(ContainSubstring(remedy))
		Expect(ran.Err).NotTo(ContainSubstring("s3cret"))
		Expect(dir).NotTo(BeADirectory())
	},
		Entry("there is no upstream", "add --upstream http://127.0.0.1:9000/mcp"),
		Entry("the upstream has no scheme",
			"--upstream: it has no scheme: begin it with https://, or with http:// on this computer",
			"--upstream=127.0.0.1:9000/s3cret"),
		Entry("the issuer ends like the path of the MCP server",
			`--issuer "http://localhost:8080/mcp" ends with /mcp, which is the path of the MCP endpoint below it`,
			one, "--issuer=http://localhost:8080/mcp"),
		Entry("the upstream has a password", "--upstream: it has a user or a fragment",
			"--upstream=http://me:s3cret@127.0.0.1/mcp"),
		Entry("tokens would cross the internet unencrypted",
			"--upstream: http is for this computer and private networks only", "--upstream=http://192.0.2.1/mcp"),
		Entry("the second upstream has no path",
			`--upstream: number 2 has no path: write it as "/path = URL"`, one, one),
		Entry("two upstreams have the same path", "is the same as", one, "--upstream=/mcp=http://127.0.0.1:9001/"),
		Entry("a path belongs to the gateway itself", "is an address of this server itself",
			"--upstream=/oauth/token=http://127.0.0.1:9001/"),
		Entry("a path has no URL", "write a list of MCP servers such as", "--upstream=/files"),
		Entry("static has no secret", `credential "static" needs it`, one, "--credential=static", "--verifier=http",
			"--verify-url=https://cms.example/"),
		Entry("static has a secret with characters not allowed in headers", "characters that no header can carry", one,
			"--credential=static", "--upstream-secret=s3cret\nx", "--signing-secret="+strings.Repeat("y", 32)),
		Entry("static signs with a short secret", "has to have 32 bytes or more", one, "--credential=static",
			"--upstream-secret=s3cret", "--signing-secret=s3cret2"),
		Entry("both secrets of static are the same", "to differ from the secret", one, "--credential=static",
			"--upstream-secret="+strings.Repeat("s3cret", 6), "--signing-secret="+strings.Repeat("s3cret", 6)),
		Entry("a secret would have no effect", `is set, but the credential is "host-token"`, one,
			"--upstream-secret=s3cret"),
		Entry("the verifier is the demo site", `only "pasteport serve" has a demo site`, one, "--verifier=site"),
		Entry("a tool requires an unknown scope", `--tool-scopes has "articles:write", which is not in scopes`, one,
			"--tool-scopes=delete_* = articles:write"),
		Entry("a tool pattern is malformed", "write a list of scopes such as", one, "--tool-scopes=[ = mcp"),
		Entry("a tool pattern is malformed without the spaces around it", "write a list of scopes such as", one,
			`--tool-scopes=a\  = mcp`),
		Entry("the upstream timeout is too short", `is "500ms": write a duration such as 1h30m, from 1s to 1h`, one,
			"--upstream-timeout=500ms"),
		Entry("the verifier asks a server that needs no key", Label("U32"),
			`--credential is "none", but verifier is "upstream", and a server that needs no key accepts any token: `+
				`choose credential "host-token" or "static", or verifier "file"`, one, "--credential=none"),
		Entry("the verifier cannot tell the upstreams' keys apart", `cannot tell which upstream a key belongs to`, one,
			"--upstream=/files=http://127.0.0.1:9001/", "--verifier=http", "--verify-url=https://cms.example/"),
		Entry("a path has a parameter", "characters that cannot be routed", one,
			"--upstream=/:x=http://127.0.0.1:9001/"),
		Entry("a path has dot segments", "empty or dot segments", one, "--upstream=/a/../b=http://127.0.0.1:9001/"),
		Entry("a header must not be forwarded", `--forward-headers has "Cookie": it is never forwarded`, one,
			"--forward-headers=Cookie"),
	)

	It("is a separate command from the demo site", func(ctx SpecContext) {
		write("pasteport.yaml", "upstream:\n- http://127.0.0.1:9000/mcp\n")
		Expect(Run(ctx, "serve", "--dev", "--addr=127.0.0.1:0").Err).To(ContainSubstring(`run "pasteport gateway"`))
	})

	It("refuses gateway settings without an upstream", func(ctx SpecContext) {
		for _, setting := range []string{"tool-scopes=x = mcp", "present=X-Api-Key: {token}", "tools=allow *",
			"upstream-host=localhost:9000"} {
			name, _, _ := strings.Cut(setting, "=")
			Expect(Run(ctx, "config", "--dev", "--"+setting).Err).
				To(ContainSubstring("--" + name + " is set, but upstream is not"))
		}
		write("pasteport.yaml", "fields: [{name: token, label: Key}]\n")
		Expect(Run(ctx, "config", "--dev").Err).
			To(ContainSubstring("fields (from pasteport.yaml:1) is set, but upstream is not"))
		Expect(Run(ctx, "config", "--dev", "--verifier=upstream").Err).To(ContainSubstring("there is no upstream"))
	})

	It("shows the effective settings", func(ctx SpecContext) {
		shown := Run(ctx, "config", "--issuer=https://mcp.example.com", "--upstream=/files = http://127.0.0.1:9000/mcp")
		Expect(shown.Code).To(BeZero(), shown.Err)
		Expect(shown.Out).
			To(And(ContainSubstring("verifier: upstream"), ContainSubstring("resource: https://mcp.example.com/files"),
				ContainSubstring("/files = http://127.0.0.1:9000/mcp")))
	})

	It("is ready without a demo site", func(ctx SpecContext) {
		service, _ := operateChecked(ctx, NewUpstream(apiKey).URL+"/mcp")
		Expect(service.AskAdmin(ctx, "/readyz").Text).
			To(MatchJSON(`{"status":"ok","checks":[{"name":"serving"},{"name":"oauth database"},` +
				`{"name":"proxies"},{"name":"upstream of ` + service.MCP() +
				`","state":"refuses","detail":` +
				`"reachable, refuses unknown keys, sent as bearer token in the header Authorization"}]}`))
	})
})

var _ = Describe("Running a gateway", Label("gateway"), func() {
	It("works in the built program, without a demo site", func(ctx SpecContext) {
		upstream, clients, dir := NewUpstream(apiKey), NewClientSite(), filepath.Join(GinkgoT().TempDir(), "data")
		run := BuildBinary().Run([]string{"SSL_CERT_FILE=" + clients.Certificate()},
			"gateway", "--dev", "--addr", "127.0.0.1:0", "--admin-addr", "off", "--data", dir, "--upstream",
			upstream.URL+"/mcp")
		Eventually(run.Out).WithTimeout(patience).
			Should(gbytes.Say(
				`serving (http://127\.0\.0\.1:\d+) on .*\n` +
					`next: connect an MCP client to http://127\.0\.0\.1:\d+/mcp\n`))
		_, rest, _ := strings.Cut(string(run.Out.Contents()), "serving ")
		issuer, _, _ := strings.Cut(rest, " ")
		world := &World{
			Issuer:  issuer,
			Dir:     dir,
			Clients: clients,
			Token:   apiKey,
		}
		Expect(world.Call(ctx, world.NewClient().Connect(ctx).Access).StatusCode).To(Equal(http.StatusOK))
		Expect(filesIn(dir)).To(And(ContainElement("oauth.db"), Not(ContainElement("site.json"))))
		Eventually(run.Interrupt()).WithTimeout(patience).Should(gexec.Exit(0))
	}, SpecTimeout(5*time.Minute))
})

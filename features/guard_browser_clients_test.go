package features_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// inspector is the origin of the MCP Inspector's page.
const inspector = "http://localhost:6274"

// WebPage sends requests as a browser does for a script of its origin: after a preflight, and
// without headers that the script may not read.
type WebPage struct{ Origin string }

// Fetch fails when fetch in a browser would.
func (p WebPage) Fetch(ctx context.Context, method, target, body string, headers ...string) (Response, error) {
	GinkgoHelper()
	if err := p.preflight(ctx, method, target, headers); err != nil {
		return Response{}, err
	}
	r := must(http.NewRequestWithContext(ctx, method, target, strings.NewReader(body)))
	r.Header.Set("Origin", p.Origin)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer := Send(r)
	if !p.letIn(answer) {
		return Response{}, fmt.Errorf("%s %s: %s may not be read by %s", method, target, answer.Status, p.Origin)
	}
	exposed := append(listed(answer, "Access-Control-Expose-Headers"), "cache-control", "content-type", "last-modified")
	for name := range answer.Header {
		if !slices.Contains(exposed, strings.ToLower(name)) {
			answer.Header.Del(name)
		}
	}
	return answer, nil
}

func (p WebPage) preflight(ctx context.Context, method, target string, headers []string) error {
	var asked []string
	for i := 0; i < len(headers); i += 2 {
		form := headers[i] == "Content-Type" && headers[i+1] == "application/x-www-form-urlencoded"
		if headers[i] != "Accept" && !form {
			asked = append(asked, strings.ToLower(headers[i]))
		}
	}
	slices.Sort(asked)
	if len(asked) == 0 && method != http.MethodDelete {
		return nil
	}
	r := must(http.NewRequestWithContext(ctx, http.MethodOptions, target, http.NoBody))
	r.Header.Set("Origin", p.Origin)
	r.Header.Set("Access-Control-Request-Method", method)
	r.Header.Set("Access-Control-Request-Headers", strings.Join(asked, ","))
	answer := Send(r)
	allowed := listed(answer, "Access-Control-Allow-Headers")
	forbidden := slices.ContainsFunc(asked, func(name string) bool { return !slices.Contains(allowed, name) })
	simple := method == http.MethodGet || method == http.MethodPost
	if answer.StatusCode/100 != 2 || !p.letIn(answer) || forbidden ||
		!simple && !slices.Contains(listed(answer, "Access-Control-Allow-Methods"), strings.ToLower(method)) {
		return fmt.Errorf("the preflight for %s %s with %v: %s %v", method, target, asked, answer.Status, answer.Header)
	}
	return nil
}

func (p WebPage) letIn(answer Response) bool {
	allowed := answer.Header.Values("Access-Control-Allow-Origin")
	return len(allowed) == 1 && (allowed[0] == "*" || allowed[0] == p.Origin)
}

func listed(answer Response, header string) (names []string) {
	for name := range strings.SplitSeq(strings.Join(answer.Header.Values(header), ","), ",") {
		names = append(names, strings.ToLower(strings.TrimSpace(name)))
	}
	return names
}

func issuerIn(run *gexec.Session) string {
	GinkgoHelper()
	said := regexp.MustCompile(`serving (\S+) on `).FindSubmatch(run.Out.Contents())
	Expect(said).To(HaveLen(2))
	return string(said[1])
}

// started runs the program and returns the world that it serves.
func started(clients *ClientSite, token string, args ...string) *World {
	GinkgoHelper()
	dir := filepath.Join(GinkgoT().TempDir(), "data")
	run := BuildBinary().Run([]string{"SSL_CERT_FILE=" + clients.Certificate()},
		append(args, "--dev", "--addr", "127.0.0.1:0", "--admin-addr", "off", "--data", dir)...)
	DeferCleanup(func() { run.Interrupt() })
	Eventually(run.Out).WithTimeout(patience).Should(gbytes.Say(`next: connect an MCP client to `))
	return &World{
		Issuer:  issuerIn(run),
		Dir:     dir,
		Clients: clients,
		Token:   token,
	}
}

// connectFromPage connects like the MCP Inspector in direct mode: all requests but the consent come
// from the page.
func connectFromPage(ctx context.Context, page WebPage, world *World) {
	GinkgoHelper()
	fetch := func(method, target, body string, headers ...string) Response {
		GinkgoHelper()
		return must(page.Fetch(ctx, method, target, body, headers...))
	}
	mcp := []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"inspector","version":"1"}}}`

	// The Inspector's headers.
	discovering := []string{"Content-Type", "application/json", "Accept", "application/json", "MCP-Protocol-Version",
		"2025-11-25"}
	challenged := fetch(http.MethodPost, world.MCP(), initialize, mcp...)
	Expect(challenged.StatusCode).To(Equal(http.StatusUnauthorized))
	named := regexp.MustCompile(`resource_metadata="([^"]+)"`).
		FindStringSubmatch(challenged.Header.Get("WWW-Authenticate"))
	Expect(named).To(HaveLen(2))
	var resource struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
	}
	Expect(json.Unmarshal([]byte(fetch(http.MethodGet, named[1], "", discovering...).Text), &resource)).To(Succeed())
	var server struct {
		Token  string `json:"token_endpoint"`
		Revoke string `json:"revocation_endpoint"`
	}
	document := fetch(http.MethodGet, resource.Servers[0]+"/.well-known/oauth-authorization-server", "", discovering...)
	Expect(json.Unmarshal([]byte(document.Text), &server)).To(Succeed())

	client := world.NewClient()
	wrong := fetch(http.MethodPost, server.Token, client.Exchange("wrong").Encode(), "Content-Type",
		"application/x-www-form-urlencoded", "MCP-Protocol-Version", "2025-11-25")
	Expect(wrong.Tokens().Error).To(Equal("invalid_grant"), "the script can read errors too")
	tokens := fetch(http.MethodPost, server.Token, client.Exchange(client.Authorize(ctx)).Encode(), "Content-Type",
		"application/x-www-form-urlencoded", "Accept", "application/json").Tokens()

	mcp = append(mcp, "Authorization", "Bearer "+tokens.Access, "MCP-Protocol-Version", "2025-11-25")
	opened := fetch(http.MethodPost, world.MCP(), initialize, mcp...)
	Expect(opened.StatusCode).To(Equal(http.StatusOK), opened.Text)
	session := opened.Header.Get("Mcp-Session-Id")
	Expect(session).NotTo(BeEmpty())
	mcp = append(mcp, "Mcp-Session-Id", session)
	Expect(fetch(http.MethodPost, world.MCP(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`, mcp...).
		StatusCode).To(Equal(http.StatusAccepted))
	Expect(fetch(http.MethodPost, world.MCP(), `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, mcp...).Text).
		To(ContainSubstring(`"tools"`))
	Expect(fetch(http.MethodDelete, world.MCP(), "", mcp...).StatusCode).
		To(BeElementOf(http.StatusOK, http.StatusNoContent))

	gone := url.Values{"token": {tokens.Refresh}, "client_id": {client.ID}}.Encode()
	Expect(fetch(http.MethodPost, server.Revoke, gone, "Content-Type", "application/x-www-form-urlencoded",
		"MCP-Protocol-Version", "2025-11-25").StatusCode).To(Equal(http.StatusOK))
}

var _ = Describe("Connecting from a web page", Label("MCP transports", "G1", "G2", "F6"), func() {
	It("works in the demo site for allowed origins", func(ctx SpecContext) {
		world := started(NewClientSite(), editorToken, "serve", "--demo-token", editorToken, "--allowed-origins",
			inspector+",https://app.example")
		connectFromPage(ctx, WebPage{inspector}, world)
		connectFromPage(ctx, WebPage{"https://app.example"}, world)
		_, err := WebPage{"https://evil.example"}.Fetch(ctx, http.MethodPost, world.MCP(), listTools, "Content-Type",
			"application/json")
		Expect(err).To(MatchError(ContainSubstring("403")))
	}, SpecTimeout(5*time.Minute))

	It("works in a gateway, with the headers that it forwards", func(ctx SpecContext) {
		upstream := NewUpstream(apiKey)
		world := started(NewClientSite(), apiKey, "gateway", "--upstream", upstream.URL+"/mcp", "--allowed-origins",
			inspector, "--forward-headers", "X-Toolsets")
		connectFromPage(ctx, WebPage{inspector}, world)
		answer, err := WebPage{inspector}.Fetch(ctx, http.MethodPost, world.MCP(), listTools, "Content-Type",
			"application/json", "X-Toolsets", "all")
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.StatusCode).To(Equal(http.StatusUnauthorized))
		_, err = WebPage{inspector}.Fetch(ctx, http.MethodPost, world.MCP(), listTools, "Content-Type",
			"application/json", "X-Evil", "all")
		Expect(err).To(MatchError(ContainSubstring("x-evil")))
	}, SpecTimeout(5*time.Minute))

	It("works for every port of this computer when loopback is allowed, and for no other page", func(ctx SpecContext) {
		world := NewWorld(func(config *service.Config) { config.AllowedOrigins = []string{"loopback"} })
		for _, origin := range []string{inspector, "http://127.0.0.1:5173", "https://[::1]:8443", "https://localhost"} {
			connectFromPage(ctx, WebPage{origin}, world)
		}
		for _, origin := range []string{"http://localhost.evil.example", "http://127.0.0.1.evil.example:80",
			"https://evil.example", "loopback", "null", "http://192.168.0.1"} {
			_, err := WebPage{origin}.Fetch(ctx, http.MethodPost, world.MCP(), listTools, "Content-Type",
				"application/json")
			Expect(err).To(MatchError(ContainSubstring("403")), origin)
		}
		Expect(world.Log.String()).NotTo(ContainSubstring("remove loopback"))
	}, SpecTimeout(time.Minute))

	It("works with loopback on a public server too, with a warning at the start", func(ctx SpecContext) {
		world := NewWorld(func(config *service.Config) {
			config.AllowedOrigins, config.Issuer, config.Development = []string{"loopback", "https://app.example"},
				"https://cms.example.com", false
		})
		Expect(linesWith(world.Log.String(), "remove loopback from the allowed origins")).To(ConsistOf(
			And(ContainSubstring(`"level":"WARN"`), ContainSubstring("https://cms.example.com/mcp"))))
	})

	It("works under another host name in allowed-hosts, with any port", func(ctx SpecContext) {
		world := NewWorld(func(config *service.Config) { config.AllowedHosts = []string{"host.docker.internal"} })
		under := func(host string) int {
			r := must(http.NewRequestWithContext(ctx, http.MethodPost, world.MCP(), strings.NewReader(listTools)))
			r.Host = host
			return Send(r).StatusCode
		}
		Expect(under("host.docker.internal:8080")).To(Equal(http.StatusUnauthorized))
		Expect(under("host.docker.internal")).To(Equal(http.StatusUnauthorized))
		Expect(under("rebound.example:8080")).To(Equal(http.StatusForbidden))
	})

	const oneOrigin = "write scheme://host or scheme://host:port for one origin"
	DescribeTable("is refused in the configuration, with the remedy, for",
		func(ctx SpecContext, setting, value, remedy string) {
			workingFolder()
			flagged := Run(ctx, "config", "--issuer=http://127.0.0.1:8080", "--dev", "--"+setting+"="+value)
			Expect(flagged.Code).To(Equal(1))
			Expect(flagged.Err).To(And(ContainSubstring("--"+setting+" has "), ContainSubstring(remedy)))
			write("pasteport.yaml", "dev: true\nissuer: http://127.0.0.1:8080\n"+setting+":\n- \""+value+"\"\n")
			Expect(Run(ctx, "config").Err).
				To(And(ContainSubstring(setting+" (from pasteport.yaml:3) has "), ContainSubstring(remedy)))
		},
		Entry("every origin", "allowed-origins", "*", oneOrigin),
		Entry("every port", "allowed-origins", "http://localhost:*", "or loopback for every port of this computer"),
		Entry("a page", "allowed-origins", "https://app.example/inspector", "without path"),
		Entry("the default port", "allowed-origins", "https://app.example:443", "and default port"),
		Entry("upper case", "allowed-origins", "https://App.example", "lower case"),
		Entry("a name that browsers write in ASCII", "allowed-origins", "https://bücher.example",
			"as browsers send it: in ASCII (xn--…)"),
		Entry("every host", "allowed-hosts", "*", "of each host, without scheme, path and pattern"),
	)

	It("is refused in the configuration when allowed-hosts has no effect", func(ctx SpecContext) {
		workingFolder()
		Expect(Run(ctx, "config", "--issuer=https://cms.example.com", "--allowed-hosts=cms.internal").Err).To(
			ContainSubstring(
				"--allowed-hosts is set, but a server with a public issuer accepts every Host: leave it out"))
	})

	It("is recommended by doctor, with the setting", func(ctx SpecContext) {
		world := NewWorld()
		said := Run(ctx, "doctor", world.MCP(), "--origin", inspector).Out
		Expect(said).To(And(ContainSubstring("allowed-origins"), ContainSubstring("WithAllowedOrigins")))
	})
})

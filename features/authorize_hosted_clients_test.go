package features_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/bootstrap/service"
)

const (
	localDocument  = "/oauth/documents/local"
	doctorDocument = "/oauth/documents/doctor"
)

// hostedBy returns the client of a document that the world publishes at a path below its issuer.
func hostedBy(world *World, issuer, path, redirect string) *Client {
	client := world.NewClient()
	client.ID, client.Redirect = issuer+path, redirect
	return client
}

var _ = Describe("Publishing the document of doctor", Label("CIMD", "C60"), func() {
	const public, callback = "https://cms.example.com", "http://127.0.0.1:5555/callback"
	inProduction := func(adjust ...func(*service.Config)) *World {
		return NewWorld(append([]func(*service.Config){func(config *service.Config) {
			config.Issuer, config.Development, config.DoctorClient = public, false, false
		}}, adjust...)...)
	}
	publishing := func(config *service.Config) { config.DoctorClient = true }
	ask := func(ctx context.Context, world *World, path, redirect string) Response {
		client := hostedBy(world, public, path, redirect)
		request := client.Request()
		request.Set("resource", public+"/mcp")
		return client.AskFor(ctx, request)
	}

	It("is off in production", func(ctx SpecContext) {
		world := inProduction()
		Expect(Get(ctx, world.Issuer+doctorDocument).StatusCode).To(Equal(http.StatusNotFound))
		Expect(ask(ctx, world, doctorDocument, callback)).To(BeASafePage(http.StatusBadRequest, "invalid_client"))
	})

	It("publishes it and admits the client without a fetch, with the setting", Label("C9"), func(ctx SpecContext) {
		world := inProduction(publishing)
		answer := Get(ctx, world.Issuer+doctorDocument)
		Expect(answer.StatusCode).To(Equal(http.StatusOK))
		Expect(answer.Header.Get("Content-Type")).To(Equal("application/json"))
		Expect(answer.Text).To(MatchJSON(`{"client_id":"` + public + doctorDocument + `",
			"client_name":"Pasteport doctor, which checks this server",
			"redirect_uris":["http://127.0.0.1/callback","http://localhost/callback"],
			"grant_types":["authorization_code","refresh_token"],"response_types":["code"],
			"token_endpoint_auth_method":"none"}`))
		page := ask(ctx, world, doctorDocument, callback)
		Expect(page.StatusCode).To(Equal(http.StatusOK), page.Text)
		Expect(page.Text).To(And(
			ContainSubstring("Pasteport doctor, which checks this server"),
			ContainSubstring("(unverified)</small></span> to <bdi>"),
			ContainSubstring("The app’s access goes to a program on this computer."),
			Not(ContainSubstring("published at"))))
		Expect(world.Clients.Fetches()).To(BeZero())
	})

	It("gives the callback to no other computer, because its name could persuade people to pass it on",
		Label("B21"), func(ctx SpecContext) {
			world := NewWorld(publishing)
			page := hostedBy(world, world.Issuer, doctorDocument, callback).Consent(ctx)
			Expect(page.Text).NotTo(ContainSubstring("approve_elsewhere"))
			Expect(page.ApproveElsewhere(ctx, world.Token)).To(BeASafePage(http.StatusBadRequest, "invalid_request"))
		})

	It("opens nothing else", Label("C9", "A12"), func(ctx SpecContext) {
		world := inProduction(publishing)
		Expect(Get(ctx, world.Issuer+localDocument).StatusCode).To(Equal(http.StatusNotFound))
		for _, path := range []string{localDocument, doctorDocument + "/", doctorDocument + "?x", "/oauth/authorize"} {
			Expect(ask(ctx, world, path, callback)).To(BeASafePage(http.StatusBadRequest, "invalid_client"), path)
		}
		for _, redirect := range []string{"https://client.example/callback", "http://127.0.0.1:5555/other",
			"https://cms.example.com/callback"} {
			Expect(ask(ctx, world, doctorDocument, redirect)).
				To(BeASafePage(http.StatusBadRequest, "invalid_request"), redirect)
		}
		Expect(Post(ctx, world.Issuer+doctorDocument, url.Values{}).StatusCode).To(Equal(http.StatusMethodNotAllowed))
	})

	It("is admitted beside allow-clients", Label("A8"), func(ctx SpecContext) {
		world := inProduction(publishing, func(config *service.Config) { config.AllowClients = []string{"claude.ai"} })
		Expect(ask(ctx, world, doctorDocument, callback).StatusCode).To(Equal(http.StatusOK))
	})

	It("lets doctor check a whole login in production", Label("doctor"), func(ctx SpecContext) {
		front := NewFront(overTLS, func(f *Front) {
			f.adjust = func(config *service.Config) { config.Development, config.DoctorClient = false, true }
		})
		d := Diagnose(ctx, front.URL()+"/mcp", "--ca", Trust(front.server), "--token", front.world.Token)
		Expect(d.With("failed")).To(BeEmpty(), d.Out)
		Expect(d.Of("revoke").Status).To(Equal("ok"))
	})
})

var _ = Describe("Connecting clients on this computer in development", Label("CIMD", "C49", "C60"), func() {
	DescribeTable("connects by the document that the server publishes, without a fetch",
		Label("A13"), func(ctx SpecContext, redirect string) {
			world := NewWorld()
			client := hostedBy(world, world.Issuer, localDocument, redirect)
			tokens := client.Connect(ctx)
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
			Expect(world.Clients.Fetches()).To(BeZero())
			Expect(world.Rows(ctx)["client_documents"]).To(BeEmpty())
		},
		Entry("Claude Code", "http://localhost:54321/callback"),
		Entry("VS Code", "http://127.0.0.1:33418/"),
		Entry("mcp-remote and the MCP Inspector", "http://localhost:6274/oauth/callback"),
	)

	It("accepts a document on this computer over http, with the limits of every other",
		Label("C12", "C15"), func(ctx SpecContext) {
			world, site := NewWorld(), newPlainSite()
			client := world.NewClient()
			client.ID = site.URL + "/client.json"
			Expect(world.Call(ctx, client.Connect(ctx).Access).StatusCode).To(Equal(http.StatusOK))
			client.ID = strings.Replace(site.URL, "127.0.0.1", "localhost", 1) + "/client.json"
			client.Connect(ctx)
			for _, path := range []string{"/moved", "/large"} {
				client.ID = site.URL + path
				Expect(client.AskFor(ctx, client.Request())).
					To(BeASafePage(http.StatusBadGateway, "invalid_client"), path)
			}
		})

	It("refuses a document over http elsewhere, on this server itself, and outside development",
		Label("C1", "C9"), func(ctx SpecContext) {
			site := newPlainSite()
			refuses := func(world *World, id string) {
				GinkgoHelper()
				client := world.NewClient()
				client.ID = id
				Expect(client.AskFor(ctx, client.Request())).To(BeASafePage(http.StatusBadRequest, "invalid_client"))
			}
			world := NewWorld()
			refuses(world, "http://client.example/client.json")
			refuses(world, world.Issuer+"/oauth/authorize")
			refuses(NewWorld(func(config *service.Config) {
				config.Issuer, config.Development = "https://cms.example.com", false
			}), site.URL+"/client.json")
			Expect(linesWith(world.Log.String(), "must be the https URL of a metadata document")).NotTo(BeEmpty())
		})

	DescribeTable("lets clients register themselves, unless the operator decides otherwise",
		Label("L11", "configuration"), func(ctx SpecContext, on bool, args ...string) {
			workingFolder()
			Expect(Run(ctx, append([]string{"config"}, args...)...).Settings()).
				To(HaveKeyWithValue("self-registration", on))
		},
		Entry("with --dev", true, "--dev"),
		Entry("without", true, "--issuer", "https://cms.example.com"),
		Entry("without, switched off", false, "--issuer", "https://cms.example.com", "--self-registration=off"),
		Entry("without and with a list of clients", false, "--issuer", "https://cms.example.com", "--allow-clients",
			"claude.ai"),
		Entry("with --dev, switched off", false, "--dev", "--self-registration=off"),
		Entry("with --dev and a list of clients", false, "--dev", "--allow-clients", "claude.ai"),
		Entry("with --dev and a list of clients that has them", true, "--dev", "--allow-clients",
			"claude.ai,self-registered"),
	)

	DescribeTable("prints which known apps cannot connect",
		Label("L11"), func(ctx SpecContext, said OmegaMatcher, args ...string) {
			run := BuildBinary().Run(nil, append([]string{"serve", "--issuer", "https://cms.example.com", "--addr",
				"127.0.0.1:0", "--admin-addr", "off", "--data", GinkgoT().TempDir()}, args...)...)
			Eventually(run.Out).WithTimeout(patience).Should(gbytes.Say("this is the demo site"))
			Expect(string(run.Interrupt().Wait(patience).Out.Contents())).To(said)
		},
		Entry("none by default", Not(ContainSubstring("cannot connect"))),
		Entry("those that register themselves",
			And(ContainSubstring("allow-clients: Cursor, Gemini CLI, "), ContainSubstring("Mistral Le Chat\n")),
			"--self-registration=off"),
		Entry("those that a list leaves out", ContainSubstring("allow-clients: ChatGPT, Codex, VS Code, "),
			"--allow-clients", "claude.ai"),
	)

	It("gives refresh tokens to apps that forget to request them", Label("A47"), func(ctx SpecContext) {
		workingFolder()
		Expect(Run(ctx, "config", "--issuer", "https://cms.example.com").Settings()).
			To(HaveKeyWithValue("refresh-tokens", "registered"))
	})

	DescribeTable("prints a line for each client, which a shell reads as it was meant",
		func(ctx SpecContext, command string, name string, words ...string) {
			issuer, lines := printedBy(ctx, command)
			for i := range words {
				words[i] = strings.ReplaceAll(words[i], "ISSUER", issuer)
			}
			Expect(wordsOf(ctx, lines[name])).To(Equal(words))
		},
		Entry("MCP Inspector", "serve", "MCP Inspector", "npx", "-y", "@modelcontextprotocol/inspector@2",
			"--transport", "http", "--server-url", "ISSUER/mcp"),
		Entry("Claude Code", "serve", "Claude Code", "claude", "mcp", "add", "--transport", "http", "--client-id",
			"ISSUER"+localDocument, "local-mcp", "ISSUER/mcp"),
		Entry("VS Code", "serve", "VS Code", "code", "--add-mcp",
			`{"name":"local-mcp","type":"http","url":"ISSUER/mcp","oauth":{"clientId":"ISSUER`+localDocument+`"}}`),
		Entry("mcp-remote", "serve", "mcp-remote", "npx", "-y", "mcp-remote", "ISSUER/mcp",
			"--static-oauth-client-info", `{"client_id":"ISSUER`+localDocument+`"}`),
		Entry("a path that needs quotes",
			"serve  --issuer  http://127.0.0.1:1  --resource  http://127.0.0.1:1/o'neil&co", "Claude Code",
			"claude", "mcp", "add", "--transport", "http", "--client-id", "http://127.0.0.1:1"+localDocument,
			"local-o-neil-co", "http://127.0.0.1:1/o'neil&co"),
		Entry("upstreams whose paths end alike",
			"gateway  --upstream  /tides/mcp = http://127.0.0.1:1/a  --upstream  /weather/mcp = http://127.0.0.1:1/b",
			"Claude Code",
			"claude", "mcp", "add", "--transport", "http", "--client-id", "ISSUER"+localDocument, "local-weather-mcp",
			"ISSUER/weather/mcp"),
		Entry("each upstream of a gateway",
			"gateway  --upstream  /tides = http://127.0.0.1:1/a  --upstream  /weather = http://127.0.0.1:1/b",
			"mcp-remote",
			"npx", "-y", "mcp-remote", "ISSUER/weather", "--static-oauth-client-info",
			`{"client_id":"ISSUER`+localDocument+`"}`),
	)

	It("prints no line for a client that cannot connect, and none outside development", func(ctx SpecContext) {
		_, lines := printedBy(ctx, "serve  --self-registration=off")
		Expect(lines).To(And(HaveLen(3), Not(HaveKey("MCP Inspector"))))
		run := BuildBinary().Run(nil, "serve", "--issuer", "https://cms.example.com", "--addr", "127.0.0.1:0",
			"--admin-addr", "off", "--data", GinkgoT().TempDir())
		Eventually(run.Out).WithTimeout(patience).
			Should(gbytes.Say(`next: connect an MCP client to https://cms.example.com/mcp\n`))
		Expect(string(run.Interrupt().Wait(patience).Out.Contents())).NotTo(ContainSubstring("npx"))
	}, SpecTimeout(2*time.Minute))
})

// newPlainSite returns a site without TLS that publishes a document, a redirect to it, and one that
// is too large.
func newPlainSite() *httptest.Server {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/client.json", http.StatusFound)
			return
		}
		members := map[string]any{"client_id": "http://" + r.Host + r.URL.Path, "client_name": "Plain",
			"redirect_uris": []string{"http://127.0.0.1/callback"}}
		if r.URL.Path == "/large" {
			members["padding"] = strings.Repeat("x", 5<<10)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(members)
	}))
	DeferCleanup(site.Close)
	return site
}

// printedBy runs the program in development, with words that two spaces separate, and returns its
// issuer and the printed commands by the names of the clients.
func printedBy(ctx context.Context, command string) (issuer string, lines map[string]string) {
	GinkgoHelper()
	args := append(strings.Split(command, "  "), "--dev", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0",
		"--data", filepath.Join(GinkgoT().TempDir(), "data"))
	run := BuildBinary().Run(nil, args...)
	Eventually(ctx, run.Out).WithTimeout(patience).Should(gbytes.Say("readiness and metrics for you"))
	lines = map[string]string{}
	for line := range strings.SplitSeq(string(run.Out.Contents()), "\n") {
		if name, command, found := strings.Cut(strings.TrimPrefix(line, "  "), "  "); found &&
			strings.HasPrefix(line, "  ") {
			lines[name] = strings.TrimSpace(command)
		}
	}
	return issuerIn(run), lines
}

// wordsOf returns the words that a POSIX shell makes of a command line, which it does not run.
func wordsOf(ctx context.Context, line string) []string {
	GinkgoHelper()
	script := filepath.Join(GinkgoT().TempDir(), "show")
	Expect(os.WriteFile(script, []byte("#!/bin/sh\nprintf '%s\\n' \"$@\"\n"), 0o700)).To(Succeed())
	said, err := exec.CommandContext(ctx, "sh", "-c", script+" "+line).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(said))
	return strings.Split(strings.TrimSuffix(string(said), "\n"), "\n")
}

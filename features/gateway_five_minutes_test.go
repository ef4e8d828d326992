package features_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
)

// Newcomer follows docs/gateway.md and docs/gateway-reference.md in an empty folder with the
// unchanged example files.
type Newcomer struct {
	Dir  string
	Node string // path of the node program
	page string // the text of both pages
}

// NewNewcomer starts after npm install: FIVE_MINUTES names the folder node_modules that .ci/run has
// installed with the page's command.
func NewNewcomer() *Newcomer {
	GinkgoHelper()
	packages := os.Getenv("FIVE_MINUTES")
	if packages == "" {
		Skip(".ci/run five_minutes runs this")
	}
	n := &Newcomer{Dir: GinkgoT().TempDir(), Node: filepath.Join(packages, ".bin", "node")}
	Expect(os.CopyFS(n.Dir, os.DirFS(filepath.Join("..", "docs", "gateway")))).To(Succeed())
	Expect(os.Symlink(packages, filepath.Join(n.Dir, "node_modules"))).To(Succeed())
	n.page = textOf("../docs/gateway.md") + textOf("../docs/gateway-reference.md")
	return n
}

func (n *Newcomer) Write(name, text string) {
	GinkgoHelper()
	Expect(os.WriteFile(filepath.Join(n.Dir, name), []byte(text), 0o600)).To(Succeed())
}

// Command returns the words of the page's command with this beginning, including continued lines.
func (n *Newcomer) Command(beginning string) []string {
	GinkgoHelper()
	text := strings.ReplaceAll(n.page, "\\\n", "")
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(beginning) + `.*$`).FindString(text)
	Expect(found).NotTo(BeEmpty(), "the page has no "+beginning)
	words := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(found, -1)
	for i, word := range words {
		words[i] = strings.Trim(word, "'")
	}
	return words
}

// Start starts a program in the newcomer's folder and returns the address that it prints.
func (n *Newcomer) Start(program string, environment []string, args ...string) string {
	GinkgoHelper()
	command := exec.Command(program, args...)
	command.Dir, command.Env = n.Dir, append(os.Environ(), environment...)
	run := must(gexec.Start(command, GinkgoWriter, GinkgoWriter))
	DeferCleanup(func() { run.Kill().Wait(patience) })
	Eventually(run.Out).WithTimeout(patience).Should(gbytes.Say(`serving (http://127\.0\.0\.1:\d+)`))
	return regexp.MustCompile(`serving (\S+)`).FindStringSubmatch(string(run.Out.Contents()))[1]
}

func (n *Newcomer) Serve(environment []string, server string) string {
	GinkgoHelper()
	_, port, _ := strings.Cut(freeAddress(), ":")
	return n.Start(n.Node, append(environment, "PORT="+port), server)
}

// Protect starts the gateway with the page's command in front of the upstream.
func (n *Newcomer) Protect(binary Binary, upstream, beginning string) *World {
	GinkgoHelper()
	clients := NewClientSite()
	words := n.Command(beginning)
	for i, word := range words {
		words[i] = strings.ReplaceAll(word, "http://127.0.0.1:9000/mcp", upstream)
	}
	Expect(words).To(ContainElement(upstream))
	ports := []string{"PASTEPORT_ADDR=127.0.0.1:0", "PASTEPORT_ADMIN_ADDR=off",
		"SSL_CERT_FILE=" + clients.Certificate()}
	issuer := n.Start(string(binary), ports, words[1:]...)
	return &World{
		Issuer:  issuer,
		Dir:     filepath.Join(n.Dir, "pasteport-data"),
		Clients: clients,
		Token:   "my-first-key",
	}
}

var _ = Describe("The five-minute guide to the gateway", Label("five_minutes", "gateway"), Ordered,
	ContinueOnFailure, func() {
		var binary Binary
		BeforeAll(func() {
			NewNewcomer() // skips the specs unless FIVE_MINUTES is set
			binary = BuildBinary()
		})

		Context("with the server in Node", func() {
			var newcomer *Newcomer
			var world *World
			BeforeEach(func() {
				newcomer = NewNewcomer()
				newcomer.Write("keys.txt", "my-first-key\n")
				world = newcomer.Protect(binary, newcomer.Serve(nil, "server.mjs"), "pasteport gateway --dev")
			})

			It("accepts clients with a key, and no others", Label("U6", "U14"), func(ctx SpecContext) {
				client := world.NewClient()
				Expect(client.Consent(ctx).Approve(ctx, "my-wrong-key")).To(BeAPage(http.StatusForbidden, ""))
				talk := world.Converse(ctx, sessions, client.Connect(ctx).Access)
				Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf("add", "count"))
				Expect(talk.Use(ctx, "add", params{"a": 2, "b": 3}).Text()).To(Equal("5"))
				Expect(Send(talk.Request(ctx, http.MethodDelete)).StatusCode).To(Equal(http.StatusOK))
			})

			It("delivers progress notifications immediately", Label("U4"), func(ctx SpecContext) {
				talk := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
				stream := Follow(talk.message(ctx, "tools/call",
					params{"name": "count", "arguments": params{}, "_meta": params{"progressToken": "p"}}))
				var came []time.Time
				for range 5 {
					Expect(stream.Next("message")).To(ContainSubstring(`"notifications/progress"`))
					came = append(came, time.Now())
				}
				Expect(stream.Next("message")).To(ContainSubstring(`"five"`))
				Expect(time.Since(came[0])).To(BeNumerically(">", 400*time.Millisecond),
					"the first of five events, 200 ms apart, was not buffered")
			})

			It("ends the grants of a key at the next call after the server has revoked it",
				Label("U8"), func(ctx SpecContext) {
					tokens := world.NewClient().Connect(ctx)
					talk := world.Converse(ctx, sessions, tokens.Access)
					newcomer.Write("keys.txt", "my-second-key\n")
					Expect(talk.Post(ctx, "tools/list", params{})).To(BeChallenged(world, "invalid_token"))
					world.Token = "my-second-key"
					again := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
					Expect(again.Use(ctx, "add", params{"a": 2, "b": 3}).Text()).To(Equal("5"))
				})

			It("passes all checks of doctor", Label("doctor"), func(ctx SpecContext) {
				d := Diagnose(ctx, world.MCP(), "--token", "my-first-key", "--admin-addr", "off")
				Expect(d.With("skipped")).To(ConsistOf("upstream"), "this world has no admin listener")
				Expect(d.With("ok")).To(HaveLen(len(d.Checks)-1), d.Out)
			})
		})

		Context("with a server that verifies the gateway's signatures", Label("U7"), func() {
			const personal = "the-long-token-of-ada"
			var newcomer *Newcomer
			BeforeEach(func() { newcomer = NewNewcomer() })

			It("tells the server who is calling, in headers that only the gateway can sign", func(ctx SpecContext) {
				tokens := must(os.ReadFile(tokenFileOf(ctx, personal)))
				newcomer.Write("tokens", string(tokens))
				newcomer.Write("upstream-secret", "an-upstream-secret")
				newcomer.Write("signing-secret", signingSecret)
				upstream := newcomer.Serve([]string{"SIGNING_SECRET=" + signingSecret}, "whoami.mjs")
				world := newcomer.Protect(binary, upstream,
					"pasteport gateway --dev --upstream http://127.0.0.1:9000/mcp --credential static")
				world.Token = personal
				talk := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
				Expect(talk.Use(ctx, "whoami", params{}).Text()).To(Equal("Adá,: editor and café,tea"))
				past := &Conversation{
					World:    world,
					Revision: sessions,
					Access:   "an-upstream-secret",
					target:   upstream,
				}
				Expect(past.Post(ctx, "tools/list", params{}, with("X-Pasteport-Subject", "Ad%C3%A1%2C")).StatusCode).
					To(Equal(http.StatusUnauthorized))
			})

			DescribeTable("accepts exactly the signed requests with the page's code",
				func(ctx SpecContext, program, file, script string) {
					newcomer.Write(file, script)
					Expect(newcomer.judge(ctx, program, file, newSignedRequest(ctx, personal))).
						To(MatchJSON(`{"subject":"Adá,","roles":["editor","café,tea"]}`))
					for _, spoil := range spoilt {
						request := newSignedRequest(ctx, personal)
						spoil(&request)
						Expect(newcomer.judge(ctx, program, file, request)).To(HavePrefix("refused: "), "%+v", request)
					}
				},
				Entry("in Node", "node", "judge.mjs", inNode),
				Entry("in Python", "python3", "judge.py", inPython),
			)
		})
	})

// signedRequest is a request that a server behind the gateway has received at this time.
type signedRequest struct {
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Secret  string            `json:"secret"`
	Now     int64             `json:"now"`
}

func newSignedRequest(ctx context.Context, personal string) signedRequest {
	GinkgoHelper()
	upstream := NewUpstream(apiKey)
	world := NewGateway(upstream.URL+"/mcp", static(ada(personal)))
	world.Token = personal
	world.Call(ctx, world.NewClient().Connect(ctx).Access)
	asked := upstream.Asked()[0]
	body := must(io.ReadAll(asked.Body))
	headers := map[string]string{}
	for name := range asked.Header {
		headers[strings.ToLower(name)] = asked.Header.Get(name)
	}
	return signedRequest{asked.Method, headers, string(body), signingSecret, time.Now().Unix()}
}

// spoilt are requests with a wrong or expired signature.
var spoilt = []func(*signedRequest){
	func(r *signedRequest) { r.Method = http.MethodDelete },
	func(r *signedRequest) { r.Body += " " },
	func(r *signedRequest) { r.Now += 120 },
	func(r *signedRequest) { r.Now -= 120 },
	func(r *signedRequest) { r.Secret = "x" },
	func(r *signedRequest) { r.Headers["x-pasteport-subject"] = "eve" },
	func(r *signedRequest) { r.Headers["x-pasteport-roles"] = "root" },
	func(r *signedRequest) { delete(r.Headers, "signature") },
	func(r *signedRequest) { delete(r.Headers, "signature-input") },
	func(r *signedRequest) { r.Headers["signature"] += "x" },
	func(r *signedRequest) {
		r.Headers["signature-input"] = strings.Replace(r.Headers["signature-input"], ` "x-pasteport-subject"`, "", 1)
	},
}

const inNode = `import { json } from 'node:stream/consumers';
import { senderOf } from './sender.mjs';
const { method, headers, body, secret, now } = await json(process.stdin);
try {
  const { subject, roles } = senderOf(method, headers, Buffer.from(body), secret, now);
  console.log(JSON.stringify({ subject, roles }));
} catch (error) {
  console.log('refused: ' + error.message);
}
`

const inPython = `import json, sys
from sender import sender_of
asked = json.load(sys.stdin)
try:
    sender = sender_of(
        asked["method"], asked["headers"], asked["body"].encode(), asked["secret"].encode(), asked["now"])
    print(json.dumps({"subject": sender["subject"], "roles": sender["roles"]}))
except ValueError as error:
    print("refused:", error)
`

// judge verifies a request with one of the page's scripts.
func (n *Newcomer) judge(ctx context.Context, program, file string, request signedRequest) string {
	GinkgoHelper()
	if program == "node" {
		program = n.Node
	}
	input := must(json.Marshal(request))
	command := exec.CommandContext(ctx, program, file)
	command.Dir, command.Stdin = n.Dir, bytes.NewReader(input)
	said, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(said))
	return strings.TrimSpace(string(said))
}

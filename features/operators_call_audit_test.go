package features_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// AuditLine is a line of an audit file.
type AuditLine struct {
	Time, Request, Subject, Account, Client, App, Grant, Resource, Method, Name, Outcome, Rule, Event string

	Digest       string `json:"arguments_sha256"`
	Arguments    json.RawMessage
	Code, Status int
}

// auditing makes a service write an audit file with a chain, whose name it returns.
func auditing(change ...func(*service.AuditConfig)) (path string, adjust func(*service.Config)) {
	path = filepath.Join(GinkgoT().TempDir(), "calls.jsonl")
	return path, func(config *service.Config) {
		config.Audit = service.AuditConfig{File: path}
		for _, apply := range change {
			apply(&config.Audit)
		}
	}
}

func auditLines(path string) (lines []AuditLine) {
	GinkgoHelper()
	text := must(os.ReadFile(path))
	for text := range strings.Lines(string(text)) {
		var line AuditLine
		Expect(json.Unmarshal([]byte(text), &line)).To(Succeed(), text)
		if line.Event == "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// toolCalls returns the lines of tools/call when there are that many.
func toolCalls(path string, count int) (lines []AuditLine) {
	GinkgoHelper()
	Eventually(func() []AuditLine {
		lines = nil
		for _, line := range auditLines(path) {
			if line.Method == "tools/call" || line.Method == "" {
				lines = append(lines, line)
			}
		}
		return lines
	}).WithTimeout(patience).Should(HaveLen(count))
	return lines
}

func fitsTerminal(line string) bool { return len(line) <= 120 }

func digestOf(canonical string) string {
	digest := sha256.Sum256([]byte(canonical))
	return hex.EncodeToString(digest[:])
}

var _ = Describe("Audit of calls", Label("audit"), func() {
	DescribeTable("has a line for each call of the site's tools, with person, client, grant and outcome, in revision",
		Label("V1", "V2"), func(ctx SpecContext, revision string) {
			path, adjust := auditing()
			world := NewWorld(adjust)
			ada := world.TokenFor(ctx, "ada", demosite.Author)
			client, other := world.NewClient(), world.NewClient()
			talk := world.Converse(ctx, revision, client.Connect(ctx).Access)
			Expect(talk.Use(ctx, "list_articles", params{}).Error.Message).To(BeEmpty())
			Expect(talk.Use(ctx, "get_article", params{"slug": "there-is-none"}).Result.IsError).To(BeTrue())
			world.Token = ada
			hers := world.Converse(ctx, revision, other.Connect(ctx).Access)
			Expect(hers.Use(ctx, "delete_article", params{"slug": "x"}).Error.Code).To(Equal(-32602))
			Expect(hers.Use(ctx, "there_is_no_such_tool", params{}).Error.Code).To(Equal(-32602))

			lines := toolCalls(path, 4)
			Expect(lines).To(HaveEach(And(HaveField("Resource", world.MCP()), HaveField("Request", Not(BeEmpty())))))
			Expect(lines[:2]).To(HaveEach(HaveField("Client", client.ID)))
			Expect(lines[2:]).To(HaveEach(HaveField("Client", other.ID)))
			Expect(lines[0]).To(And(HaveField("Name", "list_articles"), HaveField("Outcome", "ok"),
				HaveField("Digest", digestOf("{}"))))
			Expect(lines[1]).To(And(HaveField("Name", "get_article"), HaveField("Outcome", "tool_error"),
				HaveField("Digest", digestOf(`{"slug":"there-is-none"}`))))
			Expect(lines[2]).
				To(And(HaveField("Name", "delete_article"), HaveField("Outcome", "refused"), HaveField("Rule", "U26"),
					HaveField("Code", -32602)))
			Expect(lines[3]).To(And(HaveField("Name", "there_is_no_such_tool"), HaveField("Outcome", "refused"),
				HaveField("Code", -32602)), "the policy knows no such tool")
			Expect(lines[0].Subject).To(And(Not(BeEmpty()), Equal(lines[1].Subject), Not(Equal(lines[2].Subject))))
			Expect(lines[2].Subject).To(Equal("ada"))
			Expect(lines).To(HaveEach(HaveField("App", "Spec Client")))
			Expect(lines[2].Account).To(Equal("ada"))
			Expect(lines[0].Grant).To(And(Not(BeEmpty()), Equal(lines[1].Grant), Not(Equal(lines[2].Grant))))
			Expect(Run(ctx, "audit", "verify", path).Code).To(Equal(0))
		}, revisions())

	It("is listed as a table by person, app and time", func(ctx SpecContext) {
		path, adjust := auditing()
		world := NewWorld(adjust)
		client := world.NewClient()
		talk := world.Converse(ctx, sessions, client.Connect(ctx).Access)
		Expect(talk.Use(ctx, "list_articles", params{}).Error.Message).To(BeEmpty())
		toolCalls(path, 1)
		listed := func(flags ...string) string {
			ran := Run(ctx, append([]string{"audit", "list", path}, flags...)...)
			Expect(ran.Code).To(BeZero(), ran.Err)
			Expect(strings.Split(ran.Out, "\n")).To(HaveEach(Satisfy(fitsTerminal)))
			return ran.Out
		}
		Expect(listed()).To(MatchRegexp(`(?m)^TIME +GRANT +SUBJECT +ACCOUNT +APP +CALL +OUTCOME +MS$`))
		row := MatchRegexp(`(?m)^\S+ \S+ +[0-9a-f]{8} +editor +editor +Spec Client +list_articles +ok +\d+$`)
		for _, chosen := range [][]string{nil, {"--subject", "editor"}, {"--client", "spec client"},
			{"--client", client.ID}, {"--client", hostOf(client.ID)}, {"--since", "1h"}} {
			Expect(listed(chosen...)).To(row)
		}
		for _, others := range [][]string{{"--subject", "ada"}, {"--client", "claude.ai"}, {"--since", "1ns"}} {
			Expect(listed(others...)).To(Equal("No calls match.\n"))
		}
		Expect(os.WriteFile(path+".cut", []byte(`{"time":"2026`), 0o600)).To(Succeed())
		Expect(Run(ctx, "audit", "list", path+".cut")).To(And(HaveField("Code", 1),
			HaveField("Err", ContainSubstring("reading a call"))))
		Expect(Run(ctx, "audit", "list")).To(HaveField("Code", 2))
	})

	It("names the setting and the remedy when its folder is missing", Label("F9"), func(ctx SpecContext) {
		refused := Run(ctx, "serve", "--dev", "--addr=127.0.0.1:0", "--admin-addr=off", "--data", GinkgoT().TempDir(),
			"--audit-file=/nowhere/calls.jsonl")
		Expect(refused).To(And(HaveField("Code", 1), HaveField("Err", And(ContainSubstring("--audit-file: "),
			ContainSubstring(": make the folder /nowhere")))))
	})

	It("has a folder in the systemd unit, the one that the page names", func() {
		unit, page := textOf("../deploy/pasteport.service"), textOf("../docs/audit.md")
		Expect(unit).To(ContainSubstring("\nLogsDirectory=pasteport\n"))
		Expect(page).To(ContainSubstring("audit-file: /var/log/pasteport/"))
	})

	It("has requests that do not reach the site, and neither pings, notifications nor requests without a token",
		Label("V1"), func(ctx SpecContext) {
			path, adjust := auditing()
			world := NewWorld(adjust)
			talk := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
			Expect(auditLines(path)).To(ConsistOf(And(HaveField("Method", "initialize"), HaveField("Outcome", "ok"))))
			Expect(talk.Ask(ctx, "ping", params{}).Error.Message).To(BeEmpty())
			Expect(world.Call(ctx, "").StatusCode).To(Equal(http.StatusUnauthorized))
			Expect(auditLines(path)).To(HaveLen(1))
			Expect(talk.Ask(ctx, "no/such/method", params{}).Error.Code).To(Equal(-32600))
			talk.session += "x"
			Expect(talk.Post(ctx, "tools/call", params{"name": "list_articles"}).StatusCode).
				To(Equal(http.StatusNotFound))
			Eventually(auditLines).WithArguments(path).WithTimeout(patience).Should(HaveLen(3))
			lines := auditLines(path)
			Expect(lines[1]).To(And(HaveField("Method", "no/such/method"), HaveField("Outcome", "refused"),
				HaveField("Status", 400)))
			Expect(lines[2]).To(And(HaveField("Method", "tools/call"), HaveField("Name", "list_articles"),
				HaveField("Outcome", "refused"), HaveField("Status", 404)))
		})

	It("names prompts, but no URI of a resource, which may be secret", Label("V2"), func(ctx SpecContext) {
		path, adjust := auditing()
		world := NewWorld(adjust)
		talk := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
		talk.Read(ctx, "article://with-a-secret")
		talk.Ask(ctx, "prompts/get", params{"name": "there-is-none", "arguments": params{"z": "1", "a": "2"}})
		Eventually(auditLines).WithArguments(path).WithTimeout(patience).Should(HaveLen(3))
		lines := auditLines(path)
		Expect(lines[1]).
			To(And(HaveField("Name", ""), HaveField("Digest", digestOf(`{"uri":"article://with-a-secret"}`))))
		Expect(lines[2]).To(And(HaveField("Method", "prompts/get"), HaveField("Outcome", "error"),
			HaveField("Code", BeNumerically("<", 0)), HaveField("Digest", digestOf(`{"a":"2","z":"1"}`))))
		Expect(string(must(os.ReadFile(path)))).NotTo(ContainSubstring("with-a-secret"))
	})

	DescribeTable("of a gateway has the outcome from the response that passes, in revision",
		Label("V1", "V2", "U4"), func(ctx SpecContext, revision string) {
			path, adjust := auditing(func(a *service.AuditConfig) { a.Arguments = true })
			upstream := NewUpstream(apiKey)
			world := NewGateway(upstream.URL+"/mcp", adjust)
			talk := world.Converse(ctx, revision, world.NewClient().Connect(ctx).Access)
			Expect(talk.Use(ctx, "shout", params{"text": "hello", "a": 1.0}).Result.IsError).To(BeTrue())
			Expect(talk.Use(ctx, "shout", params{"text": "hello"}).Text()).To(Equal("HELLO"))
			Expect(talk.Use(ctx, "there_is_no_such_tool", params{}).Error.Code).To(Equal(-32602))
			twice := strings.NewReader(
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shout","name":"delete_all"}}`)
			Expect(talk.Post(ctx, "tools/call", params{"name": "shout"}, func(r *http.Request) {
				r.Body, r.ContentLength = io.NopCloser(twice), int64(twice.Len())
			}).StatusCode).To(Equal(http.StatusBadRequest))

			lines := toolCalls(path, 4)
			Expect(lines[0]).
				To(And(HaveField("Name", "shout"), HaveField("Outcome", "tool_error"), HaveField("Status", 200)),
					"an unknown argument")
			Expect(string(lines[0].Arguments)).To(Equal(`{"a":1,"text":"hello"}`))
			Expect(lines[0].Digest).To(Equal(digestOf(`{"a":1,"text":"hello"}`)))
			Expect(lines[1]).To(And(HaveField("Outcome", "ok"), HaveField("Grant", Not(BeEmpty())),
				HaveField("Request", Not(BeEmpty()))))
			Expect(lines[2]).To(And(HaveField("Outcome", "error"), HaveField("Code", -32602)))
			Expect(lines[3]).To(And(HaveField("Method", ""), HaveField("Outcome", "refused"), HaveField("Rule", "U11"),
				HaveField("Status", 400)))
			Expect(Run(ctx, "audit", "verify", path).Code).To(Equal(0))
		}, revisions(batching, headers, sessions, stateless))

	It("of a gateway records a failure of the upstream", Label("V1"), func(ctx SpecContext) {
		path, adjust := auditing()
		upstream := NewUpstream(apiKey)
		world := NewGateway(upstream.URL+"/mcp", adjust)
		talk := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
		Expect(talk.Use(ctx, "shout", params{"text": "hello"}).Text()).To(Equal("HELLO"))
		upstream.Answer(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
		})
		talk.Post(ctx, "tools/call", params{"name": "shout"})
		lines := toolCalls(path, 2)
		Expect(lines[0]).To(And(HaveField("Outcome", "ok"), HaveField("Status", 200)))
		Expect(lines[1]).To(And(HaveField("Outcome", "error"), HaveField("Status", BeNumerically(">=", 500))))
	})

	It("is in the log with audit-log, with the request id of the response", Label("V1"), func(ctx SpecContext) {
		world := NewWorld(func(config *service.Config) { config.Audit.Log = true })
		answer := world.Call(ctx, world.NewClient().Connect(ctx).Access)
		line := world.Log.String()
		line = line[strings.LastIndex(line, `"msg":"call"`):]
		line, _, _ = strings.Cut(line, "\n")
		Expect(line).To(ContainSubstring(`"method":"tools/list","outcome":"ok"`))
		Expect(line).To(ContainSubstring(`"request":"` + answer.Header.Get("X-Request-Id") + `"`))
	})

	It("holds no token and no long text of a client", Label("V2", "B15"), func(ctx SpecContext) {
		path, adjust := auditing()
		world := NewGateway(NewUpstream(apiKey).URL+"/mcp", adjust)
		tokens := world.NewClient().Connect(ctx)
		talk := world.Converse(ctx, sessions, tokens.Access)
		talk.Use(ctx, strings.Repeat("long", 1000), params{"key": tokens.Refresh})
		talk.Post(ctx, strings.Repeat("long", 1000), params{})
		Eventually(auditLines).WithArguments(path).WithTimeout(patience).Should(HaveLen(3))
		text := must(os.ReadFile(path))
		for _, secret := range []string{tokens.Access, tokens.Refresh, apiKey, talk.session} {
			Expect(string(text)).NotTo(ContainSubstring(secret))
		}
		Expect(bytes.Split(text, []byte("\n"))).To(HaveEach(WithTransform(func(line []byte) int {
			return len(line)
		}, BeNumerically("<", 1000))))
	})

	It("counts its lines in the metrics", Label("V5"), func(ctx SpecContext) {
		_, adjust := auditing()
		service := Operate(adjust)
		service.Call(ctx, service.NewClient().Connect(ctx).Access)
		metrics := service.AskAdmin(ctx, "/metrics").Text
		Expect(metrics).To(ContainSubstring("pasteport_audit_lines_total 2\n"))
	})
})

package trace_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
	"github.com/pasteport/pasteport/features/suite"
)

func TestTrace(t *testing.T) {
	suite.Run(t, "Trace")
}

var then = time.UnixMilli(1_770_091_506_789).UTC()

// took returns steps a second apart, each written as "kind", "kind@attempt" or "kind:outcome".
func took(agent, network string, written ...string) (steps []trace.Step) {
	for i, text := range written {
		text, outcome, _ := strings.Cut(text, ":")
		kind, attempt, _ := strings.Cut(text, "@")
		if outcome == "" {
			outcome = string(trace.Passed)
		}
		steps = append(steps, trace.Step{
			At:      then.Add(time.Duration(i) * time.Second),
			Kind:    trace.Kind(kind),
			Outcome: trace.Outcome(outcome),
			Attempt: attempt,
			Request: agent + kind,
			Agent:   agent,
			Address: network,
		})
	}
	return steps
}

// pathOf returns the kinds of the steps of a connection.
func pathOf(c trace.Connection) string {
	var kinds []string
	for _, step := range c.Steps {
		kinds = append(kinds, string(step.Kind))
	}
	return strings.Join(kinds, " ")
}

func pathsOf(steps []trace.Step) (paths []string) {
	for i := range steps {
		steps[i].Number = int64(i + 1)
	}
	for _, connection := range trace.Assemble(steps, then.Add(time.Hour)) {
		paths = append(paths, pathOf(connection))
	}
	return paths
}

const home, office = "192.0.2.0/24", "198.51.100.0/24"

var _ = Describe("Assembling connections", func() {
	It("adds the discovery steps from the same network to an attempt", func() {
		Expect(pathsOf(took("cli", home, "challenge", "resource_metadata", "server_metadata", "authorize@a",
			"page@a"))).To(Equal([]string{
			"challenge resource_metadata server_metadata authorize page",
		}))
	})

	It("keeps the steps of another network separate", func() {
		steps := append(took("cli", office, "challenge"), took("browser", home, "authorize@a")...)
		Expect(pathsOf(steps)).To(ConsistOf("challenge", "authorize"))
	})

	It("recognizes a service by its network and user agent at the exchange", func() {
		steps := append(took("service", office, "challenge"), took("other", office, "resource_metadata")...)
		steps = append(steps, took("browser", home, "authorize@a", "code_issued@a")...)
		steps = append(steps, took("service", office, "exchange@a")...)
		Expect(pathsOf(steps)).To(ConsistOf("challenge authorize code_issued exchange", "resource_metadata"))
	})

	It("adds discovery steps only once", func() {
		steps := took("cli", home, "challenge", "authorize@a", "code_issued@a", "challenge", "exchange@a")
		Expect(pathsOf(steps)).To(ConsistOf("challenge authorize code_issued challenge exchange"))
	})

	DescribeTable("adds discovery steps that are not older than", func(age time.Duration, paths ...string) {
		steps := took("cli", home, "challenge", "authorize@a")
		steps[1].At = then.Add(age)
		Expect(pathsOf(steps)).To(ConsistOf(paths))
	},
		Entry("ten minutes", 10*time.Minute, "challenge authorize"),
		Entry("but none that are older", 10*time.Minute+time.Millisecond, "challenge", "authorize"),
	)

	It("adds the newest of two discoveries from one network", func() {
		steps := append(took("old", home, "challenge"), took("new", home, "resource_metadata")...)
		steps = append(steps, took("browser", home, "authorize@a")...)
		Expect(pathsOf(steps)).To(ConsistOf("challenge", "resource_metadata authorize"))
	})

	It("does not add the refusal of another client", func() {
		for _, stray := range []string{"exchange:refused", "refresh:refused", "call:refused"} {
			Expect(pathsOf(took("cli", home, stray, "challenge", "authorize@a", "call@a"))).
				To(ConsistOf(strings.TrimSuffix(stray, ":refused"), "challenge authorize call"), stray)
		}
	})

	It("ignores steps older than seven days", func() {
		steps := took("cli", home, "authorize@a", "page@a")
		Expect(trace.Assemble(steps, then.Add(7*24*time.Hour))).To(ConsistOf(HaveField("Steps", HaveLen(1))))
	})

	It("adds a wrong code to the client's newest attempt that waits for one, if any", func() {
		for last, paths := range map[string][]string{
			"code_issued@b": {"code_issued", "code_issued exchange"},
			"exchange@b":    {"code_issued exchange", "exchange"},
			"exchange@a":    {"code_issued exchange", "exchange"},
			"ended@a":       {"code_issued ended", "exchange"},
		} {
			steps := took("cli", home, "code_issued@a", last, "exchange")
			for i := range steps {
				steps[i].Client = "https://client.example/c.json"
			}
			Expect(pathsOf(steps)).To(ConsistOf(paths), last)
		}
		Expect(pathsOf(took("cli", home, "code_issued@a", "exchange"))).
			To(ConsistOf("code_issued", "exchange"), "without a client_id")
		two := took("cli", home, "code_issued@a", "code_issued@b", "exchange@b", "exchange")
		for i := range two {
			two[i].Client = "https://client.example/c.json"
		}
		Expect(pathsOf(two)).To(ConsistOf("code_issued exchange", "code_issued exchange"), "the older one still waits")
	})

	It("lists the connection with the newest step first", func() {
		Expect(pathsOf(took("cli", home, "authorize@a", "page@b", "page@a"))).
			To(Equal([]string{"authorize page", "page"}))
	})

	It("uses the client's document and its own user agent, not the browser's", func() {
		steps := append(took("browser", home, "authorize@a"), took("program", office, "exchange@a")...)
		steps[0].Client = "https://client.example/c.json"
		c := trace.Assemble(steps, then)[0]
		Expect([]string{c.Client, c.Agent, c.Address, c.Who()}).
			To(Equal([]string{"https://client.example/c.json", "program", office, "client.example"}))
	})

	It("shows the newest connection that reached the page, else the newest", func() {
		failed := trace.Connection{ID: "failed", Steps: took("browser", home, "authorize:refused")}
		probe := trace.Connection{ID: "probe", Steps: took("cli", home, "challenge")}
		Expect(trace.Latest([]trace.Connection{probe, failed, probe})).To(Equal(1))
		Expect(trace.Latest([]trace.Connection{probe, probe})).To(Equal(0))
	})

	It("finds none for an empty id", func() {
		_, ok := trace.Find(trace.Assemble(took("cli", home, "authorize@abc"), then), "")
		Expect(ok).To(BeFalse())
	})

	DescribeTable("finds one by", func(id string, only bool) {
		all := trace.Assemble(took("cli", home, "authorize@abc", "page@abd"), then)
		found, ok := trace.Find(all, id)
		Expect(ok).To(Equal(only))
		if only {
			Expect(found.ID).To(HavePrefix("ab"))
		}
	},
		Entry("its id", "abc", true), Entry("the request of a step", "clipage", true),
		Entry("the beginning of two", "ab", false),
		Entry("the beginning of a request", "clip", true), Entry("the beginning of the requests of two", "cli", false),
	)
})

var _ = Describe("The verdict about a connection", func() {
	const connected = "authorize@a page@a token_judged@a code_issued@a exchange@a call@a"
	DescribeTable("is", func(state trace.State, missing trace.Kind, later time.Duration, path string) {
		steps := took("cli", home, strings.Fields(path)...)
		c := trace.Assemble(steps, steps[len(steps)-1].At.Add(later))[0]
		Expect(c.State).To(Equal(state))
		Expect(c.Missing).To(Equal(missing))
		Expect(c.Verdict).NotTo(BeEmpty())
	},
		Entry("connected after the first call", trace.Connected, trace.Kind(""), time.Hour, connected),
		Entry("connected after a refresh", trace.Connected, trace.Kind(""), time.Hour, connected+" refresh@a"),
		Entry("connected although one call was refused", trace.Connected, trace.Kind(""), time.Hour,
			connected+" call@a:refused"),
		Entry("connected although a stream was refused", trace.Connected, trace.Kind(""), time.Hour,
			connected+" stream@a:refused"),
		Entry("connected although the form was submitted again", trace.Connected, trace.Kind(""), time.Hour,
			connected+" token_judged@a:refused"),
		Entry("under way while it only renews its token", trace.UnderWay, trace.Call, 24*time.Hour-time.Millisecond,
			"exchange@a refresh@a"),
		Entry("half way when it never makes a call", trace.HalfWay, trace.Call, 24*time.Hour-time.Second,
			"exchange@a refresh@a refresh@a"),
		Entry("under way although another document is missing", trace.UnderWay, trace.Authorize, time.Second,
			"server_metadata server_metadata:refused"),
		Entry("stopped when the only document is missing", trace.Stopped, trace.Kind(""), time.Second,
			"resource_metadata server_metadata:refused"),
		Entry("stopped when the refresh was refused", trace.Stopped, trace.Kind(""), time.Hour,
			connected+" refresh@a:refused"),
		Entry("stopped when its only call was refused", trace.Stopped, trace.Kind(""), time.Hour,
			"exchange@a call@a:refused"),
		Entry("stopped when a step failed", trace.Stopped, trace.Kind(""), time.Second,
			"authorize@a client_metadata@a:failed"),
		Entry("ended, also with later steps", trace.Over, trace.Kind(""), time.Hour,
			connected+" ended@a call@a:refused"),
		Entry("under way within the minute of a program", trace.UnderWay, trace.Call, time.Minute-time.Millisecond,
			"exchange@a"),
		Entry("half way after that minute", trace.HalfWay, trace.Call, time.Minute, "exchange@a"),
		Entry("under way within the ten minutes of a person", trace.UnderWay, trace.TokenJudged,
			10*time.Minute-time.Millisecond, "page@a"),
		Entry("half way after those minutes", trace.HalfWay, trace.TokenJudged, 10*time.Minute, "page@a"),
	)

	DescribeTable("names the mistake of a Codex that stops after the code", func(agent string, isNamed bool) {
		c := trace.Assemble(append(took(agent, home, "server_metadata"),
			took("browser", home, "authorize@a", "code_issued@a")...), then.Add(time.Hour))[0]
		Expect(c.Missing).To(Equal(trace.Exchange))
		Expect(strings.Contains(c.Verdict, "The mistake is in the client")).To(Equal(isNamed), c.Verdict)
		Expect(c.Hint).To(ContainSubstring("Codex 0.143.0 to 0.146.1"))
	},
		Entry("of 0.143.0", "codex_cli_rs/0.143.0 (Debian 13.0.0; x86_64) unknown", true),
		Entry("of 0.146.1", "codex-tui/0.146.1", true),
		Entry("of an unknown version", "Codex Desktop", true),
		Entry("but not of 0.142.9", "codex_exec/0.142.9", false),
		Entry("but not of 0.146.2", "codex_cli_rs/0.146.2", false),
		Entry("but not of 1.144.0", "codex_cli_rs/1.144.0", false),
		Entry("but not of another client", "claude-code/0.144.0", false),
	)

	DescribeTable("explains why it ended", func(reason oauth.EndReason, words string) {
		steps := took("cli", home, "ended@a")
		steps[0].Reason = string(reason)
		Expect(trace.Assemble(steps, then)[0].Verdict).
			To(And(ContainSubstring(words), Not(ContainSubstring(string(reason)))))
	},
		Entry(nil, oauth.EndedByCodeReplay, "used a second time"),
		Entry(nil, oauth.EndedByReuse, "replaced refresh token"),
		Entry(nil, oauth.EndedByRevocation, "client revoked"), Entry(nil, oauth.EndedByHostToken, "does not know"),
		Entry(nil, oauth.EndedByLostKey, "secret"), Entry(nil, oauth.EndedByHost, "site ended"),
		Entry(nil, oauth.EndedByPerson, "person ended"), Entry(nil, oauth.EndedByOperator, "operator ended"),
	)

	DescribeTable("gives advice for a refusal by", func(rule string, outcome trace.Outcome, hint string) {
		steps := took("cli", home, "exchange@a:"+string(outcome))
		steps[0].Rule = rule
		Expect(trace.Assemble(steps, then)[0].Hint).To(ContainSubstring(hint))
	},
		Entry("its rule", "D14", trace.Refused, "auth-code-ttl"),
		Entry("the first of its rules with advice", "D13, D22", trace.Refused, "right deployment"),
		Entry("the letter of a rule without advice", "D2", trace.Refused, "maker of the client"),
		Entry("the request in the log for a failure of this service", "", trace.Failed, "request cliexchange"),
	)

	DescribeTable("advises a proxy when no metadata host has answered, and so",
		Label("C51"), func(advised bool, earlier ...trace.Step) {
			unreachable := trace.Step{
				At:      then,
				Kind:    trace.ClientMetadata,
				Outcome: trace.Refused,
				Rule:    "C41",
				Request: "last",
			}
			connections := trace.Assemble(append(earlier, unreachable), then)
			last, found := trace.Find(connections, "last")
			Expect(found).To(BeTrue())
			Expect(strings.Contains(last.Hint, "metadata-proxy")).To(Equal(advised))
			Expect(last.Hint).To(ContainSubstring("firewall"))
		},
		Entry("the first time", true),
		Entry("each time", true, trace.Step{
			At:      then,
			Kind:    trace.ClientMetadata,
			Outcome: trace.Refused,
			Rule:    "C41",
			Request: "first",
		}),
		Entry("when other refusals were of this service", true, trace.Step{
			At:      then,
			Kind:    trace.ClientMetadata,
			Outcome: trace.Failed,
			Rule:    "C21",
			Request: "first",
		}),
		Entry("when an answer is too old", true, trace.Step{
			At:      then.Add(-trace.Memory),
			Kind:    trace.ClientMetadata,
			Outcome: trace.Passed,
			Request: "first",
		}),
		Entry("not after a document", false, trace.Step{
			At:      then,
			Kind:    trace.ClientMetadata,
			Outcome: trace.Passed,
			Request: "first",
		}),
		Entry("not after an invalid answer", false, trace.Step{
			At:      then,
			Kind:    trace.ClientMetadata,
			Outcome: trace.Refused,
			Rule:    "C42",
			Request: "first",
		}),
	)

	DescribeTable("gives advice when the MCP server behind a gateway", Label("gateway"), func(path, rule, hint string) {
		steps := took("cli", home, strings.Fields(path)...)
		steps[len(steps)-1].Rule, steps[len(steps)-1].Reason = rule, "the reason"
		c := trace.Assemble(steps, then)[0]
		Expect(c.Verdict).To(ContainSubstring(`"MCP call"`))
		Expect(c.Verdict).To(ContainSubstring("the reason"))
		Expect(c.Hint).To(ContainSubstring(hint))
	},
		Entry("does not answer", "exchange@a call@a:failed", "U9", "exactly the address of the upstream setting",
			Label("U9")),
		Entry("has stopped answering", connected+" call@a:failed", "U9", "upstream-timeout", Label("U9")),
		Entry("is not tried for a while", connected+" call@a:failed", "U10", "five times in a row", Label("U10")),
		Entry("does not get an ambiguous message", "exchange@a call@a:refused", "U11", "in another way", Label("U11")),
		Entry("does not get a name that the rules deny", "exchange@a call@a:refused", "U26",
			"do not allow this person what the client asked for", Label("U26")),
		Entry("sends an answer that cannot be filtered", "exchange@a call@a:failed", "U27",
			"longer than 16 MiB, compressed in another way than gzip, or not valid JSON", Label("U27")),
		Entry("does not get the session of another caller", "exchange@a call@a:refused", "U12",
			"session of another person or client", Label("U12")),
		Entry("has refused the token, and the end was not noted", "exchange@a call@a:refused", "U8", "connect again",
			Label("U8")),
	)

	It("explains how to connect again when the token is no longer valid, whether the site or the upstream server "+
		"refused it", Label("gateway", "U8"), func() {
		steps := took("cli", home, "exchange@a", "call@a", "ended@a", "call@a:refused")
		steps[2].Reason, steps[3].Rule = string(oauth.EndedByHostToken), "U8"
		Expect(trace.Assemble(steps, then)[0].Hint).To(ContainSubstring("connect again with a valid token"))
		steps[2].Reason = string(oauth.EndedByPerson)
		Expect(trace.Assemble(steps, then)[0].Hint).To(BeEmpty())
	})

	It("has no advice after a call has passed again", Label("gateway"), func() {
		c := trace.Assemble(took("cli", home, strings.Fields(connected+" call@a:failed call@a")...), then)[0]
		Expect(c.Verdict).NotTo(ContainSubstring("failed"))
		Expect(c.Hint).To(BeEmpty())
	})
})

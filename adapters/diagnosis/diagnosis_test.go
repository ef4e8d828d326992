package diagnosis_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/diagnosis"
	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

func TestDiagnosis(t *testing.T) { suite.Run(t, "Diagnosis") }

var then = time.UnixMilli(1_770_091_506_789).UTC()

// took returns steps a second apart, each written as "kind", "kind@attempt" or "kind:outcome".
func took(agent, network string, written ...string) (steps []connection.Step) {
	for i, text := range written {
		text, outcome, _ := strings.Cut(text, ":")
		kind, attempt, _ := strings.Cut(text, "@")
		if outcome == "" {
			outcome = string(connection.Passed)
		}
		steps = append(steps, connection.Step{
			At:      then.Add(time.Duration(i) * time.Second),
			Kind:    connection.Kind(kind),
			Outcome: connection.Outcome(outcome),
			Attempt: attempt,
			Request: agent + kind,
			Agent:   agent,
			Address: network,
		})
	}
	return steps
}

// pathOf returns the kinds of the steps of a connection.
func pathOf(c diagnosis.Connection) string {
	var kinds []string
	for _, step := range c.Steps {
		kinds = append(kinds, string(step.Kind))
	}
	return strings.Join(kinds, " ")
}

func pathsOf(steps []connection.Step) (paths []string) {
	for i := range steps {
		steps[i].Number = int64(i + 1)
	}
	for _, made := range diagnosis.Assemble(steps, then.Add(time.Hour)) {
		paths = append(paths, pathOf(made))
	}
	return paths
}

const home, office = "192.0.2.0/24", "198.51.100.0/24"

var _ = Describe("Assembling connections", func() {
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

	It("does not add the refusal of another client", func() {
		for _, stray := range []string{"exchange:refused", "refresh:refused", "call:refused"} {
			Expect(pathsOf(took("cli", home, stray, "challenge", "authorize@a", "call@a"))).
				To(ConsistOf(strings.TrimSuffix(stray, ":refused"), "challenge authorize call"), stray)
		}
	})

	It("ignores steps older than seven days", func() {
		steps := took("cli", home, "authorize@a", "page@a")
		Expect(diagnosis.Assemble(steps, then.Add(7*24*time.Hour))).To(ConsistOf(HaveField("Steps", HaveLen(1))))
	})

	It("lists the connection with the newest step first", func() {
		Expect(pathsOf(took("cli", home, "authorize@a", "page@b", "page@a"))).
			To(Equal([]string{"authorize page", "page"}))
	})

	It("uses the client's document and its own user agent, not the browser's", func() {
		steps := append(took("browser", home, "authorize@a"), took("program", office, "exchange@a")...)
		steps[0].Client = "https://client.example/c.json"
		c := diagnosis.Assemble(steps, then)[0]
		Expect([]string{c.Client, c.Agent, c.Address, c.Who()}).
			To(Equal([]string{"https://client.example/c.json", "program", office, "client.example"}))
	})

	It("shows the newest connection that reached the page, else the newest", func() {
		failed := diagnosis.Connection{ID: "failed", Steps: took("browser", home, "authorize:refused")}
		probe := diagnosis.Connection{ID: "probe", Steps: took("cli", home, "challenge")}
		Expect(diagnosis.Latest([]diagnosis.Connection{probe, failed, probe})).To(Equal(1))
		Expect(diagnosis.Latest([]diagnosis.Connection{probe, probe})).To(Equal(0))
	})

	It("finds none for an empty id", func() {
		_, ok := diagnosis.Find(diagnosis.Assemble(took("cli", home, "authorize@abc"), then), "")
		Expect(ok).To(BeFalse())
	})

	DescribeTable("finds one by", func(id string, only bool) {
		all := diagnosis.Assemble(took("cli", home, "authorize@abc", "page@abd"), then)
		found, ok := diagnosis.Find(all, id)
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

var _ = Describe("The advice for refusals", func() {
	It("is for rules that exist", func() {
		rules, err := os.ReadFile("../../docs/rules.md")
		Expect(err).NotTo(HaveOccurred())
		texts, err := os.ReadFile("advice.txt")
		Expect(err).NotTo(HaveOccurred())
		found := regexp.MustCompile(`(?m)^([A-Z]\d+)\t`).FindAllSubmatch(texts, -1)
		Expect(len(found)).To(BeNumerically(">", 40))
		for _, rule := range found {
			Expect(string(rules)).To(ContainSubstring("**" + string(rule[1]) + "**"))
		}
		Expect(string(texts)).To(MatchRegexp(`^(\S+\t\S[^\t]*\S\n)+$`), "a key, a tab and a text in each line")
		for _, kind := range []connection.Kind{connection.Challenge, connection.Exchange, connection.Page} {
			c := diagnosis.Assemble(took("cli", home, string(kind)+"@a"), then.Add(time.Hour))[0]
			Expect(c.Verdict).NotTo(BeEmpty())
			Expect(c.Hint).To(MatchRegexp(`^[^{}]+$`), "no term is left")
		}
	})
})

var _ = Describe("The verdict about a connection", func() {
	const connected = "authorize@a page@a token_judged@a code_issued@a exchange@a call@a"
	DescribeTable("is", func(state diagnosis.State, missing connection.Kind, later time.Duration, path string) {
		steps := took("cli", home, strings.Fields(path)...)
		c := diagnosis.Assemble(steps, steps[len(steps)-1].At.Add(later))[0]
		Expect(c.State).To(Equal(state))
		Expect(c.Missing).To(Equal(missing))
		Expect(c.Verdict).NotTo(BeEmpty())
	},
		Entry("connected after the first call", diagnosis.Connected, connection.Kind(""), time.Hour, connected),
		Entry("connected after a refresh", diagnosis.Connected, connection.Kind(""), time.Hour, connected+" refresh@a"),
		Entry("connected although one call was refused", diagnosis.Connected, connection.Kind(""), time.Hour,
			connected+" call@a:refused"),
		Entry("connected although a stream was refused", diagnosis.Connected, connection.Kind(""), time.Hour,
			connected+" stream@a:refused"),
		Entry("connected although the form was submitted again", diagnosis.Connected, connection.Kind(""), time.Hour,
			connected+" token_judged@a:refused"),
		Entry("under way while it only renews its token", diagnosis.UnderWay, connection.Call,
			24*time.Hour-time.Millisecond,
			"exchange@a refresh@a"),
		Entry("half way when it never makes a call", diagnosis.HalfWay, connection.Call, 24*time.Hour-time.Second,
			"exchange@a refresh@a refresh@a"),
		Entry("under way although another document is missing", diagnosis.UnderWay, connection.Authorize, time.Second,
			"server_metadata server_metadata:refused"),
		Entry("stopped when the only document is missing", diagnosis.Stopped, connection.Kind(""), time.Second,
			"resource_metadata server_metadata:refused"),
		Entry("stopped when the refresh was refused", diagnosis.Stopped, connection.Kind(""), time.Hour,
			connected+" refresh@a:refused"),
		Entry("stopped when its only call was refused", diagnosis.Stopped, connection.Kind(""), time.Hour,
			"exchange@a call@a:refused"),
		Entry("stopped when a step failed", diagnosis.Stopped, connection.Kind(""), time.Second,
			"authorize@a client_metadata@a:failed"),
		Entry("ended, also with later steps", diagnosis.Over, connection.Kind(""), time.Hour,
			connected+" ended@a call@a:refused"),
		Entry("under way within the minute of a program", diagnosis.UnderWay, connection.Call,
			time.Minute-time.Millisecond,
			"exchange@a"),
		Entry("half way after that minute", diagnosis.HalfWay, connection.Call, time.Minute, "exchange@a"),
		Entry("under way within the ten minutes of a person", diagnosis.UnderWay, connection.TokenJudged,
			10*time.Minute-time.Millisecond, "page@a"),
		Entry("half way after those minutes", diagnosis.HalfWay, connection.TokenJudged, 10*time.Minute, "page@a"),
	)

	DescribeTable("explains why it ended", func(reason oauth.EndReason, words string) {
		steps := took("cli", home, "ended@a")
		steps[0].Reason = string(reason)
		Expect(diagnosis.Assemble(steps, then)[0].Verdict).
			To(And(ContainSubstring(words), Not(ContainSubstring(string(reason)))))
	},
		Entry(nil, oauth.EndedByCodeReplay, "used a second time"),
		Entry(nil, oauth.EndedByReuse, "replaced refresh token"),
		Entry(nil, oauth.EndedByRevocation, "client revoked"), Entry(nil, oauth.EndedByHostToken, "does not know"),
		Entry(nil, oauth.EndedByLostKey, "secret"), Entry(nil, oauth.EndedByHost, "site ended"),
		Entry(nil, oauth.EndedByNewPerson, "names another person"), Entry(nil, oauth.EndedByLostScopes, "scopes"),
		Entry("with both names", oauth.EndedByNewPerson+`: "ann" before, "bob" now.`,
			`another person for it: "ann" before, "bob" now.`),
		Entry(nil, oauth.EndedByPerson, "person ended"), Entry(nil, oauth.EndedByOperator, "operator ended"),
	)

	DescribeTable("gives advice for a refusal by", func(rule string, outcome connection.Outcome, hint string) {
		steps := took("cli", home, "exchange@a:"+string(outcome))
		steps[0].Rule = rule
		Expect(diagnosis.Assemble(steps, then)[0].Hint).To(ContainSubstring(hint))
	},
		Entry("its rule", "D14", connection.Refused, "auth-code-ttl"),
		Entry("the rule of an unreachable host", Label("C51"), "C41", connection.Refused, "metadata-proxy"),
		Entry("the first of its rules with advice", "D13, D22", connection.Refused, "right deployment"),
		Entry("the letter of a rule without advice", "D2", connection.Refused, "maker of the client"),
		Entry("the request in the log for a failure of this service", "", connection.Failed, "request cliexchange"),
	)

	DescribeTable("gives advice when the MCP server behind a gateway", Label("gateway"), func(path, rule, hint string) {
		steps := took("cli", home, strings.Fields(path)...)
		steps[len(steps)-1].Rule, steps[len(steps)-1].Reason = rule, "the reason"
		c := diagnosis.Assemble(steps, then)[0]
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
		Expect(diagnosis.Assemble(steps, then)[0].Hint).To(ContainSubstring("connect again with a valid token"))
		steps[2].Reason = string(oauth.EndedByPerson)
		Expect(diagnosis.Assemble(steps, then)[0].Hint).To(BeEmpty())
	})

	It("has no advice after a call has passed again", Label("gateway"), func() {
		c := diagnosis.Assemble(took("cli", home, strings.Fields(connected+" call@a:failed call@a")...), then)[0]
		Expect(c.Verdict).NotTo(ContainSubstring("failed"))
		Expect(c.Hint).To(BeEmpty())
	})
})

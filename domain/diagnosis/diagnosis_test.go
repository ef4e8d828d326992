package diagnosis

import (
	"cmp"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

func TestDiagnosis(t *testing.T) { suite.Run(t, "Diagnosis") }

var then = time.UnixMilli(1_770_091_500_000).UTC().Truncate(window)

// took returns steps of one sender a second apart, each written as "kind", "kind@attempt" or
// "kind:outcome".
func took(agent, network string, written ...string) (entries []attempt.Entry) {
	for i, text := range written {
		text, outcome, _ := strings.Cut(text, ":")
		kind, id, _ := strings.Cut(text, "@")
		entries = append(entries, attempt.Entry{
			Step: attempt.Step{
				At:      then.Add(time.Duration(i) * time.Second),
				Kind:    attempt.Kind(kind),
				Outcome: attempt.Outcome(cmp.Or(outcome, string(attempt.Passed))),
				Request: agent + kind,
			},
			Attempt: id,
			Agent:   agent,
			Address: network,
		})
	}
	return entries
}

// assembled returns the attempts of the steps, which are written one by one, the newest first.
func assembled(entries []attempt.Entry, now time.Time) []Attempt {
	stored := map[string]attempt.Attempt{}
	for _, entry := range entries {
		var found []attempt.Attempt
		for _, id := range idsOf([]attempt.Entry{entry}) {
			if a, has := stored[id]; has {
				found = append(found, a)
			}
		}
		for _, a := range merge(found, []attempt.Entry{entry}) {
			stored[a.ID] = a
		}
	}
	all := slices.SortedFunc(maps.Values(stored), func(a, b attempt.Attempt) int { return b.At.Compare(a.At) })
	return diagnose(all, now)
}

func pathOf(a Attempt) string {
	var kinds []string
	for _, step := range a.Steps {
		kinds = append(kinds, string(step.Kind))
	}
	return strings.Join(kinds, " ")
}

// pathsOf returns the kinds of the steps of each attempt.
func pathsOf(entries []attempt.Entry) (paths []string) {
	for _, a := range assembled(entries, then.Add(time.Hour)) {
		paths = append(paths, pathOf(a))
	}
	return paths
}

// later moves steps in time.
func later(by time.Duration, entries []attempt.Entry) []attempt.Entry {
	for i := range entries {
		entries[i].At = entries[i].At.Add(by)
	}
	return entries
}

const home, office = "192.0.2.0/24", "198.51.100.0/24"

var _ = Describe("Telling attempts apart", Label("T2"), func() {
	It("makes one attempt of all steps with a ticket, from any sender", func() {
		steps := append(took("browser", home, "authorize@a", "code_issued@a"),
			later(2*time.Second, took("service", office, "exchange@a"))...)
		Expect(pathsOf(append(steps, took("browser", home, "authorize@b")...))).
			To(ConsistOf("authorize code_issued exchange", "authorize"))
	})

	DescribeTable("makes one attempt of what a sender does without a ticket,", func(one bool,
		change func(*attempt.Entry), by time.Duration) {
		steps := took("cli", home, "challenge")
		next := later(by, took("cli", home, "resource_metadata"))
		change(&next[0])
		Expect(pathsOf(append(steps, next...))).To(HaveLen(map[bool]int{true: 1, false: 2}[one]))
	},
		Entry("within five minutes", true, func(*attempt.Entry) {}, 4*time.Minute),
		Entry("but not later", false, func(*attempt.Entry) {}, 5*time.Minute),
		Entry("but not from another network", false, func(e *attempt.Entry) { e.Address = office }, time.Second),
		Entry("but not with another user agent", false, func(e *attempt.Entry) { e.Agent = "cli/2" }, time.Second),
		Entry("but not with a ticket", false, func(e *attempt.Entry) { e.Attempt = "a" }, time.Second),
	)

	DescribeTable("finds one by", func(id string, only bool) {
		all := assembled(took("cli", home, "authorize@abc", "page@abd"), then)
		found, ok := Find(all, id)
		Expect(ok).To(Equal(only))
		if only {
			Expect(found.ID).To(HavePrefix("ab"))
		}
	},
		Entry("its id", "abc", true), Entry("the request of a step", "clipage", true),
		Entry("the beginning of a request", "clip", true), Entry("the beginning of the requests of two", "cli", false),
	)
})

var _ = Describe("The steps of an attempt", func() {
	It("are in the order of their times, also when a replica writes late", func() {
		steps := took("cli", home, "authorize@a", "page@a", "token_judged@a", "code_issued@a")
		steps[0], steps[1], steps[2], steps[3] = steps[2], steps[3], steps[0], steps[1]
		a := assembled(steps, then)[0]
		Expect(pathOf(a)).To(Equal("authorize page token_judged code_issued"))
		Expect(a.Missing).To(Equal(attempt.Exchange))
	})

	DescribeTable("leave out repeated ones", func(written string, count int, path string) {
		Expect(pathsOf(took("cli", home, slices.Repeat([]string{written}, count)...))).To(ConsistOf(path))
	},
		Entry("of a client", "challenge", 3, "challenge"),
		Entry("that are refused", "call@a:refused", 3, "call"),
		Entry("but none of a page, because people report their ids", "page@a:refused", 2, "page page"),
		Entry("but none of the wrong tokens", "token_judged@a:refused", 2, "token_judged token_judged"),
	)

	It("do not revive a connection that has ended, whenever they are written", func() {
		steps := took("cli", home, "exchange@a", "ended@a", "call@a", "refresh@a")
		steps[1], steps[2] = steps[2], steps[1]
		a := assembled(steps, then)[0]
		Expect(a).To(And(HaveField("State", Ended), HaveField("Last.Kind", attempt.Ended)))
		Expect(pathOf(a)).To(Equal("exchange ended call refresh"))
	})

	It("have no control characters, no token and no long text of a client", func() {
		hostile := "x\x1b[2Jé" + "ppa_" + strings.Repeat("A", 43) + strings.Repeat(" y", 500)
		steps := took(hostile, home, "exchange@a:refused")
		steps[0].Client, steps[0].Reason = hostile, hostile
		a := assembled(steps, then)[0]
		for _, text := range []string{a.Client, a.Agent, a.Last.Reason, a.Steps[0].Reason} {
			Expect(text).To(And(HavePrefix("x?[2J?"), HaveLen(300), Not(ContainSubstring("AAAA"))))
		}
	})
})

var _ = Describe("Attempts of doctor", Label("T1"), func() {
	const run = "pasteport-doctor/1 (run A)"

	It("are marked, left out and counted, and have no verdict about a client", func() {
		all := assembled(append(took(run, home, "challenge", "authorize@a", "exchange@a"),
			took("node", home, "challenge")...), then)
		clients, doctors := WithoutDoctor(all)
		Expect(clients).To(ConsistOf(HaveField("Agent", "node")))
		Expect(doctors).To(Equal(2))
		Expect(all).To(ContainElement(And(HaveField("Doctor", true), HaveField("State", Ended),
			HaveField("Verdict", ContainSubstring("its own report")))))
	})

	It("do not hide the attempt of a client that then takes the name of doctor", func() {
		forged := append(took("node", home, "authorize@a"), took(run, home, "page@a", "exchange@a")...)
		Expect(assembled(forged, then)).To(ConsistOf(HaveField("Doctor", false)))
	})
})

var _ = Describe("A client that has to register itself", Label("T3"), func() {
	// off returns steps of metadata without a registration endpoint, and of refused registrations.
	off := func(written ...string) []attempt.Entry {
		steps := took("cli", home, written...)
		for i := range steps {
			if steps[i].Kind == attempt.Registration || steps[i].Kind == attempt.ServerMetadata {
				steps[i].Rule = "F4"
			}
		}
		return steps
	}

	DescribeTable("is named as the cause as soon as it tries to", func(written ...string) {
		a := assembled(off(written...), then)[0]
		Expect(a.State).To(Equal(Stopped))
		Expect(a.Verdict).To(Equal("The client has to register itself, and self-registration is off."))
		Expect(a.Hint).To(ContainSubstring("self-registration: true"))
	},
		Entry("first of all", "registration:refused"),
		Entry("after the metadata", "challenge", "server_metadata", "registration:refused"),
	)

	It("is the suspected cause when the client stops at metadata without a registration endpoint", func() {
		steps := off("challenge", "server_metadata", "challenge")
		waiting := assembled(steps, then.Add(time.Second))[0]
		Expect(waiting).To(And(HaveField("State", UnderWay), HaveField("Missing", attempt.Authorize)))
		Expect(waiting.Verdict).To(ContainSubstring("A client that has to register itself stops here"))
		Expect(waiting.Hint).To(ContainSubstring("self-registration: true"))
		gone := assembled(steps, then.Add(time.Hour))[0]
		Expect(gone.State).To(Equal(HalfWay))
		Expect(gone.Verdict).To(ContainSubstring("Probably it has to register itself"))
		on := assembled(took("cli", home, "challenge", "server_metadata"), then.Add(time.Hour))[0]
		Expect(on.Verdict).NotTo(ContainSubstring("register"))
		Expect(on.Hint).To(ContainSubstring("still has tokens"), "as mcp-remote when it starts again")
	})
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
		for _, kind := range []attempt.Kind{attempt.Challenge, attempt.Exchange, attempt.Page} {
			c := assembled(took("cli", home, string(kind)+"@a"), then.Add(time.Hour))[0]
			Expect(c.Verdict).NotTo(BeEmpty())
			Expect(c.Hint).To(MatchRegexp(`^[^{}]+$`), "no term is left")
		}
	})
})

var _ = Describe("The verdict about a connection", func() {
	const connected = "authorize@a page@a token_judged@a code_issued@a exchange@a call@a"
	DescribeTable("is", func(state State, missing attempt.Kind, later time.Duration, path string) {
		steps := took("cli", home, strings.Fields(path)...)
		c := assembled(steps, steps[len(steps)-1].At.Add(later))[0]
		Expect(c.State).To(Equal(state))
		Expect(c.Missing).To(Equal(missing))
		Expect(c.Verdict).NotTo(BeEmpty())
	},
		Entry("connected after the first call", Connected, attempt.Kind(""), time.Hour, connected),
		Entry("under way while it only renews its token", UnderWay, attempt.Call,
			24*time.Hour-time.Millisecond,
			"refresh@a"),
		Entry("stopped when the only document is missing", Stopped, attempt.Kind(""), time.Second,
			"resource_metadata server_metadata:refused"),
		Entry("stopped when the refresh was refused", Stopped, attempt.Kind(""), time.Hour,
			connected+" refresh@a:refused"),
		Entry("ended, also with later steps", Ended, attempt.Kind(""), time.Hour,
			connected+" ended@a call@a:refused"),
		Entry("under way within the minute of a program", UnderWay, attempt.Call,
			time.Minute-time.Millisecond,
			"exchange@a"),
		Entry("half way after those minutes", HalfWay, attempt.TokenJudged, 10*time.Minute, "page@a"),
	)

	It("explains why it ended", func() {
		explained := map[string]oauth.EndReason{}
		for _, reason := range []oauth.EndReason{
			oauth.EndedByCodeReplay, oauth.EndedByReuse, oauth.EndedByRevocation, oauth.EndedByHostToken,
			oauth.EndedByLostKey, oauth.EndedByHost, oauth.EndedByNewPerson, oauth.EndedByLostScopes,
			oauth.EndedByPerson, oauth.EndedByOperator, oauth.EndedByNewPerson + `: "ann" before, "bob" now.`,
		} {
			steps := took("cli", home, "ended@a")
			steps[0].Reason = string(reason)
			verdict := assembled(steps, then)[0].Verdict
			Expect(verdict).NotTo(ContainSubstring(string(reason)))
			Expect(explained).NotTo(HaveKey(verdict), "each reason has its own words")
			explained[verdict] = reason
		}
		Expect(explained).To(HaveKey(HaveSuffix(`another person for it: "ann" before, "bob" now.`)))
	})

	DescribeTable("gives advice for a refusal by", func(rule string, outcome attempt.Outcome, hint string) {
		steps := took("cli", home, "exchange@a:"+string(outcome))
		steps[0].Rule = rule
		Expect(assembled(steps, then)[0].Hint).To(ContainSubstring(hint))
	},
		Entry("its rule", "D14", attempt.Refused, "auth-code-ttl"),
		Entry("the letter of a rule without advice", "D2", attempt.Refused, "maker of the client"),
		Entry("the request in the log for a failure of this service", "", attempt.Failed, "request cliexchange"),
	)

	It("explains how to connect again when the token is no longer valid, whether the site or the upstream server "+
		"refused it", Label("gateway", "U8"), func() {
		steps := took("cli", home, "exchange@a", "call@a", "ended@a", "call@a:refused")
		steps[2].Reason, steps[3].Rule = string(oauth.EndedByHostToken), "U8"
		Expect(assembled(steps, then)[0].Hint).To(ContainSubstring("connect again with a valid token"))
		steps[2].Reason = string(oauth.EndedByPerson)
		Expect(assembled(steps, then)[0].Hint).To(BeEmpty())
	})
})

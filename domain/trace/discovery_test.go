package trace_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/trace"
)

// heard returns steps of one network, each written as "milliseconds agent kind" or "milliseconds
// agent kind@attempt".
func heard(written ...string) (steps []trace.Step) {
	for i, text := range written {
		var after int
		var agent, kind string
		_, err := fmt.Sscan(text, &after, &agent, &kind)
		Expect(err).NotTo(HaveOccurred(), text)
		step := took(strings.ReplaceAll(agent, "_", " "), home, kind)[0]
		step.At, step.Number, step.Request = then.Add(time.Duration(after)*time.Millisecond), int64(i+1),
			fmt.Sprint("request", i)
		steps = append(steps, step)
	}
	return steps
}

// senders returns the user agents and kinds of the steps of each connection, the newest connection
// first.
func senders(steps []trace.Step) (found []string) {
	for _, connection := range trace.Assemble(steps, then.Add(time.Hour)) {
		var path []string
		for _, step := range connection.Steps {
			path = append(path, step.Agent+" "+string(step.Kind))
		}
		found = append(found, strings.Join(path, ", "))
	}
	return found
}

// started are the steps of one start of mcp-remote 0.15.1, as measured.
func started(after int) (steps []string) {
	for i, step := range []string{
		"undici challenge", "node resource_metadata", "node server_metadata", "node challenge",
		"undici resource_metadata", "undici server_metadata",
	} {
		steps = append(steps, fmt.Sprint(after+40*i, " ", step))
	}
	return steps
}

const ofOneStart = "undici challenge, node resource_metadata, node server_metadata, node challenge, undici " +
	"resource_metadata, undici server_metadata"

var _ = Describe("Telling attempts apart", Label("T2"), func() {
	It("joins the steps of two HTTP libraries of one client to one attempt", func() {
		steps := append(started(0), "900 Mozilla/5.0 authorize@a", "4000 Mozilla/5.0 code_issued@a",
			"4100 undici exchange@a", "4200 undici call@a")
		Expect(senders(heard(steps...))).
			To(Equal([]string{ofOneStart +
				", Mozilla/5.0 authorize, Mozilla/5.0 code_issued, undici exchange, undici call"}))
	})

	It("joins the steps of a client that sends no user agent with its discovery, as Claude Code and the Python SDK do",
		func() {
			for _, agent := range []string{"claude-code/2.1.206_(cli)", "python-httpx/0.28.1"} {
				steps := heard("0 "+agent+" challenge", "100 - resource_metadata", "200 - server_metadata",
					"3000 Mozilla/5.0 authorize@a", "9000 - exchange@a", "9100 "+agent+" call@a")
				for i := range steps {
					steps[i].Agent = strings.TrimPrefix(steps[i].Agent, "-")
				}
				connections := trace.Assemble(steps, then)
				Expect(connections).To(ConsistOf(HaveField("Steps", HaveLen(6))))
				Expect(connections[0].Agent).To(HavePrefix(agent[:6]))
				Expect(trace.Assemble(steps[:3], then)).
					To(ConsistOf(HaveField("Steps", HaveLen(3))), "before the login")
			}
		})

	It("keeps two people apart who have the same client in two networks", func() {
		steps := heard("0 editor/1 challenge", "10 Mozilla/5.0 authorize@a", "20 editor/1 exchange@a")
		steps[0].Address = office
		Expect(senders(steps)).To(ConsistOf("editor/1 challenge", "Mozilla/5.0 authorize, editor/1 exchange"))
		steps = heard("0 Mozilla/5.0 code_issued@a", "10 editor/1 exchange:refused")
		steps[1].Address, steps[0].Client, steps[1].Client = office, "https://editor.example/c.json",
			"https://editor.example/c.json"
		Expect(senders(steps)).To(ConsistOf("Mozilla/5.0 code_issued", "editor/1 exchange"),
			"the code of another person")
	})

	It("keeps two people apart who have the same client in one network, one after the other", func() {
		Expect(senders(heard("0 cli challenge", "10 cli server_metadata", "20 browser authorize@a",
			"30 cli server_metadata", "40 browser authorize@b",
			"50 cli exchange@a", "60 cli exchange@b"))).
			To(ConsistOf("cli challenge, cli server_metadata, browser authorize, cli exchange",
				"cli server_metadata, browser authorize, cli exchange"))
	})

	It("joins the probes of a client that is connected, as Codex sends at each start", func() {
		const connects = "browser authorize@a"
		probe := func(after int) []string {
			return []string{fmt.Sprint(after, " codex challenge"), fmt.Sprint(after+10, " codex resource_metadata"),
				fmt.Sprint(after+20, " codex server_metadata")}
		}
		steps := slices.Concat(probe(0), probe(60_000),
			[]string{"61000 " + connects, "62000 codex exchange@a", "63000 codex call@a"},
			probe(600_000), probe(86_000_000), []string{"86000100 other challenge"})
		Expect(senders(heard(steps...))).To(ConsistOf(And(HavePrefix("codex challenge"),
			HaveSuffix("codex call, codex challenge, codex resource_metadata, codex server_metadata, codex challenge, "+
				"codex resource_metadata, codex server_metadata")), "other challenge"))
		c := trace.Assemble(heard(steps...), then.Add(25*time.Hour))
		Expect(c).To(ContainElement(And(HaveField("State", trace.Connected), HaveField("Steps", HaveLen(15)))))
	})

	It("joins a probe to the connection before it, not to the one after it", func() {
		Expect(senders(heard("0 browser authorize@a", "10 cli exchange@a", "60000 cli challenge",
			"120000 browser2 authorize@b", "120010 cli exchange@b"))).
			To(ConsistOf("browser authorize, cli exchange", "cli challenge, browser2 authorize, cli exchange"),
				"the login to which it leads comes first")
		Expect(senders(heard("0 browser authorize@a", "10 cli exchange@a", "60000 cli challenge",
			"960000 browser2 authorize@b", "960010 cli exchange@b"))).
			To(ConsistOf("browser authorize, cli exchange, cli challenge", "browser2 authorize, cli exchange"))
	})

	It("does not join a probe of another network or user agent, or of a client that cannot register itself", func() {
		connects := []string{"0 browser authorize@a", "10 cli exchange@a", "20 cli call@a"}
		steps := heard(append(connects, "60000 cli challenge")...)
		steps[3].Address = office
		Expect(senders(steps)).To(HaveLen(2))
		Expect(senders(heard(append(connects, "60000 browser challenge")...))).To(HaveLen(2),
			"the person's browser is no client")
		steps = heard(append(connects, "60000 cli challenge", "60010 cli registration:refused")...)
		steps[4].Rule = "F4"
		Expect(senders(steps)).To(HaveLen(2))
	})

	It("keeps refusals apart that are more than a minute apart, unless they repeat", func() {
		Expect(senders(heard("0 cli call:refused", "60000 cli exchange:refused"))).To(HaveLen(1))
		Expect(senders(heard("0 cli call:refused", "60001 cli exchange:refused"))).To(HaveLen(2))
		Expect(senders(heard("0 cli call:refused", "600000 cli call:refused"))).To(HaveLen(1))
	})

	It("keeps the starts of one client apart", func() {
		Expect(senders(heard(append(started(0), started(700)...)...))).To(Equal([]string{ofOneStart, ofOneStart}))
		steps := append(append(started(0), started(700)...), "1500 Mozilla/5.0 authorize@a", "2000 undici exchange@a")
		Expect(senders(heard(steps...))).
			To(ConsistOf(ofOneStart+", "+ofOneStart+", Mozilla/5.0 authorize, undici exchange"), "until it connects")
	})

	It("joins the discovery that a client repeats at once, as the official Go SDK does", func() {
		Expect(senders(heard("0 go challenge", "10 go resource_metadata", "20 go server_metadata", "310 go challenge",
			"320 go resource_metadata", "330 go server_metadata"))).
			To(HaveLen(1))
		Expect(senders(heard("0 go challenge", "10 go resource_metadata", "20 go server_metadata",
			"330 go challenge"))).To(HaveLen(2), "after a pause")
	})

	It("joins the requests of a program that comes no further than the challenge", func() {
		Expect(senders(heard("0 monitor challenge", "60000 monitor challenge", "120000 monitor challenge"))).
			To(HaveLen(1))
		Expect(senders(heard("0 cli challenge", "60000 cli challenge", "61000 cli challenge",
			"90000 cli server_metadata"))).
			To(Equal([]string{"cli challenge, cli challenge, cli server_metadata", "cli challenge"}),
				"until it comes further")
	})

	It("begins another connection with the challenge after an authorization request", func() {
		Expect(senders(heard("0 cli challenge", "10 browser authorize@a", "100 cli challenge",
			"110 browser authorize@b"))).
			To(ConsistOf("cli challenge, browser authorize", "cli challenge, browser authorize"))
	})

	It("joins the discovery that a client repeats before it exchanges the code", func() {
		Expect(senders(heard("0 cli resource_metadata", "10 cli server_metadata", "20 browser authorize@a",
			"900 cli resource_metadata", "910 cli server_metadata", "920 cli exchange@a"))).
			To(Equal([]string{"cli resource_metadata, cli server_metadata, browser authorize, cli resource_metadata, " +
				"cli server_metadata, cli exchange"}))
	})

	It("gives each of two clients behind one address its own discovery, as soon as the exchange shows the client",
		func() {
			Expect(senders(heard("0 editor/1 challenge", "10 terminal/2 challenge", "20 browser authorize@a",
				"30 browser authorize@b", "40 editor/1 exchange@a", "50 terminal/2 exchange@b"))).
				To(ConsistOf("editor/1 challenge, browser authorize, editor/1 exchange",
					"terminal/2 challenge, browser authorize, terminal/2 exchange"))
			Expect(senders(heard("0 node challenge", "2000 undici challenge", "2020 browser authorize@a",
				"2030 browser authorize@b", "2040 node exchange@a", "2050 undici exchange@b"))).
				To(ConsistOf("node challenge, browser authorize, node exchange",
					"undici challenge, browser authorize, undici exchange"), "which name no client")
		})

	It("does not join what another client left that gave up", func() {
		Expect(senders(heard("0 editor/1 challenge", "10 browser authorize@a", "20 terminal/2 exchange@a"))).
			To(ConsistOf("editor/1 challenge", "browser authorize, terminal/2 exchange"))
		steps := heard("0 node challenge", "10 node registration:refused", "20 browser authorize@a")
		steps[1].Rule = "F4"
		Expect(senders(steps)).
			To(ConsistOf("node challenge, node registration", "browser authorize"), "it cannot have come further")
	})

	It("begins another attempt when a client that has completed its discovery comes back later, with any step", func() {
		one := []string{"0 node resource_metadata", "100 node server_metadata", "200 node challenge",
			"300 node resource_metadata", "400 node server_metadata"}
		Expect(senders(heard(append(one, "5300 node challenge")...))).To(HaveLen(1), "within five seconds")
		Expect(senders(heard(append(one, "5500 node challenge", "5600 node resource_metadata")...))).To(HaveLen(2))
	})

	It("does not blame a client that reads the metadata without a challenge, as mcp-remote does when it starts with "+
		"its tokens", func() {
		steps := heard("0 node resource_metadata", "100 node server_metadata")
		Expect(trace.Assemble(steps, then.Add(time.Second))).To(ConsistOf(HaveField("State", trace.UnderWay)))
		Expect(trace.Assemble(steps, then.Add(time.Hour))).
			To(ConsistOf(And(HaveField("State", trace.Over),
				HaveField("Verdict", ContainSubstring("still has tokens")))))
	})

	It("does not join libraries of two clients that follow each other", func() {
		Expect(senders(heard("0 node challenge", "1000 undici resource_metadata"))).To(HaveLen(1))
		Expect(senders(heard("0 node challenge", "1001 undici resource_metadata"))).To(HaveLen(2))
		Expect(senders(heard("0 node challenge", "10 editor/1 challenge"))).
			To(HaveLen(2), "an agent that names a client")
		Expect(senders(heard("0 editor/1 challenge", "10 editor/2 challenge"))).To(HaveLen(2), "another version")
		Expect(senders(heard("0 node challenge", "10 browser authorize@a", "20 node exchange@a",
			"30 undici challenge"))).To(HaveLen(2), "after the exchange")
		Expect(senders(heard(append(started(0), "500 python-httpx/0.28.1 challenge")...))).
			To(HaveLen(2), "a challenge after a complete discovery")
	})
})

var _ = Describe("Attempts of doctor", Label("T1"), func() {
	const one, two = "pasteport-doctor/1_(run_A)", "pasteport-doctor/1_(run_B)"

	It("are marked, and left out and counted", func() {
		all := trace.Assemble(heard("0 "+one+" challenge", "10 node challenge", "20 "+one+" authorize@a",
			"30 "+one+" ended@a"), then)
		Expect(all).To(HaveLen(2))
		Expect(all[0]).To(And(HaveField("Doctor", true), HaveField("Steps", HaveLen(3))))
		clients, doctors := trace.WithoutDoctor(all)
		Expect(clients).To(ConsistOf(HaveField("Agent", "node")))
		Expect(doctors).To(Equal(1))
	})

	It("are one connection for each run, which ends without a verdict about a client", func() {
		all := trace.Assemble(heard("0 "+one+" challenge", "10 "+one+" authorize@a", "20 "+two+" challenge",
			"30 "+one+" exchange", "40 "+one+" exchange@a", "50 "+one+" challenge"), then)
		Expect(all).To(ConsistOf(
			And(HaveField("Agent", HaveSuffix("(run A)")), HaveField("Steps", HaveLen(5)),
				HaveField("State", trace.Over), HaveField("Verdict", ContainSubstring("a report of its own"))),
			And(HaveField("Agent", HaveSuffix("(run B)")), HaveField("Steps", HaveLen(1)))))
		Expect(all[0].Who()).To(HavePrefix("pasteport-doctor/1"))
	})

	It("do not hide the attempt of a client that then takes the name of doctor", func() {
		forged := trace.Assemble(heard("0 node authorize@a", "10 "+one+" page@a", "20 "+one+" exchange@a"), then)
		Expect(forged).To(ConsistOf(And(HaveField("Doctor", false), HaveField("Steps", HaveLen(3)))))
	})

	It("are not marked when a browser or another client takes part", func() {
		mixed := trace.Assemble(heard("0 "+one+" authorize@a", "10 Mozilla/5.0 page@a"), then)
		Expect(mixed).To(ConsistOf(HaveField("Doctor", false)))
		Expect(trace.Assemble(heard("0 pasteport-doctors challenge"), then)).To(ConsistOf(HaveField("Doctor", false)))
	})

	It("have no steps of another run, and clients have none of theirs", Label("T2"), func() {
		Expect(trace.Assemble(heard("0 "+one+" challenge", "10 "+two+" challenge", "20 "+one+" authorize@a",
			"30 "+two+" authorize@b"), then)).
			To(ConsistOf(HaveField("Steps", HaveLen(2)), HaveField("Steps", HaveLen(2))))
		Expect(senders(heard("0 "+one+" server_metadata", "10 Mozilla/5.0 authorize@a", "20 node exchange@a"))).
			To(ConsistOf(HavePrefix("pasteport"), HavePrefix("Mozilla")))
	})
})

var _ = Describe("A client that has to register itself", Label("T3"), func() {
	// off returns steps of metadata without a registration endpoint, and of refused registrations.
	off := func(written ...string) []trace.Step {
		steps := heard(written...)
		for i := range steps {
			if steps[i].Kind == trace.Registration || steps[i].Kind == trace.ServerMetadata {
				steps[i].Rule = "F4"
			}
		}
		return steps
	}

	It("is named as the cause as soon as it tries to, also when it then tries another transport", func() {
		for _, written := range [][]string{
			{"0 cli registration:refused"},
			{"0 cli challenge", "1 cli server_metadata", "2 cli registration:refused"},
			{"0 cli challenge", "1 cli server_metadata", "2 cli registration:refused", "3 cli challenge"},
		} {
			c := trace.Assemble(off(written...), then)[0]
			Expect(c.State).To(Equal(trace.Stopped))
			Expect(c.Verdict).To(Equal("The client has to register itself, and self-registration is off."))
			Expect(c.Hint).To(ContainSubstring("self-registration: true"))
		}
	})

	It("is the suspected cause when the client stops at metadata without a registration endpoint", func() {
		steps := off("0 cli challenge", "1 cli server_metadata", "2 cli challenge")
		waiting := trace.Assemble(steps, then.Add(time.Second))[0]
		Expect(waiting).To(And(HaveField("State", trace.UnderWay), HaveField("Missing", trace.Authorize)))
		Expect(waiting.Verdict).To(ContainSubstring("A client that has to register itself stops here"))
		Expect(waiting.Hint).To(ContainSubstring("self-registration: true"))
		gone := trace.Assemble(steps, then.Add(time.Hour))[0]
		Expect(gone.State).To(Equal(trace.HalfWay))
		Expect(gone.Verdict).To(ContainSubstring("Probably it has to register itself"))
		on := trace.Assemble(heard("0 cli challenge", "1 cli server_metadata"), then.Add(time.Hour))[0]
		Expect(on.Verdict).NotTo(ContainSubstring("register"))
	})
})

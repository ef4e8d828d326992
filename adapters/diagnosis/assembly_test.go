package diagnosis_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/diagnosis"
	"github.com/pasteport/pasteport/domain/connection"
)

// heard returns steps of one network, each written as "milliseconds agent kind" or "milliseconds
// agent kind@attempt".
func heard(written ...string) (steps []connection.Step) {
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
func senders(steps []connection.Step) (found []string) {
	for _, made := range diagnosis.Assemble(steps, then.Add(time.Hour)) {
		var path []string
		for _, step := range made.Steps {
			path = append(path, step.Agent+" "+string(step.Kind))
		}
		found = append(found, strings.Join(path, ", "))
	}
	return found
}

var _ = Describe("Telling attempts apart", Label("T2"), func() {
	It("adds its discovery to an attempt as soon as the exchange or a call shows the client", func() {
		steps := heard("0 cli challenge", "10 cli resource_metadata", "20 cli server_metadata",
			"900 Mozilla/5.0 authorize@a", "4000 Mozilla/5.0 code_issued@a", "4100 cli exchange@a", "4200 cli call@a")
		const discovery = "cli challenge, cli resource_metadata, cli server_metadata"
		Expect(senders(steps[:5])).To(ConsistOf(discovery, "Mozilla/5.0 authorize, Mozilla/5.0 code_issued"))
		Expect(senders(steps)).To(ConsistOf(discovery +
			", Mozilla/5.0 authorize, Mozilla/5.0 code_issued, cli exchange, cli call"))
	})

	It("adds the discovery of both user agents of a client that names itself in some requests, as Claude Code does",
		func() {
			steps := heard("0 claude-code/2.1.206 challenge", "100 - resource_metadata", "200 - server_metadata",
				"3000 Mozilla/5.0 authorize@a", "9000 - exchange@a", "9100 claude-code/2.1.206 call@a")
			for i := range steps {
				steps[i].Agent = strings.TrimPrefix(steps[i].Agent, "-")
			}
			connections := diagnosis.Assemble(steps, then)
			Expect(connections).To(ConsistOf(HaveField("Steps", HaveLen(6))))
			Expect(connections[0].Agent).To(HavePrefix("claude"))
		})

	It("adds discovery that is at most ten minutes older than the authorization request", func() {
		Expect(senders(heard("0 cli challenge", "600000 browser authorize@a", "600010 cli exchange@a"))).To(HaveLen(1))
		Expect(senders(heard("0 cli challenge", "600001 browser authorize@a", "600010 cli exchange@a"))).To(HaveLen(2))
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

	It("gives each of two clients behind one address its own discovery", func() {
		Expect(senders(heard("0 editor/1 challenge", "10 terminal/2 challenge", "20 browser authorize@a",
			"30 browser authorize@b", "40 editor/1 exchange@a", "50 terminal/2 exchange@b"))).
			To(ConsistOf("editor/1 challenge, browser authorize, editor/1 exchange",
				"terminal/2 challenge, browser authorize, terminal/2 exchange"))
	})

	It("gives a discovery to one attempt only", func() {
		Expect(senders(heard("0 cli challenge", "10 browser authorize@a", "20 browser authorize@b", "30 cli exchange@a",
			"40 cli exchange@b", "50 cli challenge"))).
			To(ConsistOf("cli challenge, browser authorize, cli exchange", "browser authorize, cli exchange",
				"cli challenge"))
	})

	It("does not add what another client left that gave up, or one that cannot register itself", func() {
		Expect(senders(heard("0 editor/1 challenge", "10 browser authorize@a", "20 terminal/2 exchange@a"))).
			To(ConsistOf("editor/1 challenge", "browser authorize, terminal/2 exchange"))
		steps := heard("0 node challenge", "10 node registration:refused", "20 browser authorize@a",
			"30 node exchange@a")
		steps[1].Rule = "F4"
		Expect(senders(steps)).To(ConsistOf("node challenge, node registration", "browser authorize, node exchange"))
	})

	It("does not add discovery to an old connection, whose first steps are deleted", func() {
		Expect(senders(heard("0 cli challenge", "10 cli call@a"))).To(ConsistOf("cli challenge", "cli call"))
	})

	DescribeTable("supposes that a client has to register itself only if it has never exchanged a code",
		func(agent string, supposed OmegaMatcher) {
			steps := heard("0 browser authorize@a", "10 cli exchange@a", "20 cli call@a", "30 server ended@a",
				"60000 "+agent+" server_metadata")
			steps[4].Rule = "F4"
			Expect(diagnosis.Assemble(steps, then.Add(time.Hour))[0].Verdict).To(supposed)
		},
		Entry("a new client", "node", ContainSubstring("Probably it has to register itself")),
		Entry("a client that was connected", "cli", Equal("The client read the metadata of the server but never "+
			"opened the authorization page.")),
	)

	Describe("adds what a connected client reads without its token", func() {
		connects := []string{"0 browser authorize@a", "10 cli exchange@a", "20 cli call@a"}
		const connected = "browser authorize, cli exchange, cli call"

		It("at each start and refresh, to its connection", func() {
			steps := heard(append(connects, "60000 cli challenge", "60010 cli server_metadata", "60020 cli refresh@a",
				"200000 cli challenge", "200010 cli server_metadata")...)
			Expect(senders(steps)).To(ConsistOf(connected + ", cli challenge, cli server_metadata, cli refresh, " +
				"cli challenge, cli server_metadata"))
			Expect(diagnosis.Assemble(steps, then.Add(time.Hour))[0].State).To(Equal(diagnosis.Connected))
		})

		It("also when its first steps are deleted", func() {
			Expect(senders(heard("0 cli call@a", "60000 cli challenge"))).To(ConsistOf("cli call, cli challenge"))
		})

		It("as soon as a new login would have followed", func() {
			steps := heard(append(connects, "60000 cli challenge")...)
			Expect(diagnosis.Assemble(steps, then.Add(2*time.Minute-time.Millisecond))).To(HaveLen(2))
			Expect(diagnosis.Assemble(steps, then.Add(2*time.Minute))).To(HaveLen(1))
		})

		DescribeTable("but not", func(written ...string) {
			Expect(senders(heard(append(connects, written...)...))).To(HaveLen(2))
		},
			Entry("what another agent reads", "60000 node challenge"),
			Entry("after its connection has ended", "50000 server ended@a", "60000 cli challenge"),
			Entry("after its token was refused", "50000 cli call:refused@a", "60000 cli challenge"),
			Entry("a new login", "60000 cli challenge", "60010 browser authorize@b", "60020 cli exchange@b"),
		)

		It("but not from another network", func() {
			steps := heard(append(connects, "60000 cli challenge")...)
			steps[3].Address = office
			Expect(senders(steps)).To(ConsistOf(connected, "cli challenge"))
		})
	})

	It("joins the requests of a sender that are at most a minute apart", func() {
		Expect(senders(heard("0 cli challenge", "60000 cli server_metadata"))).To(HaveLen(1))
		Expect(senders(heard("0 cli challenge", "60001 cli server_metadata"))).To(HaveLen(2))
		Expect(senders(heard("0 cli call:refused", "60000 cli exchange:refused"))).To(HaveLen(1))
		Expect(senders(heard("0 cli call:refused", "60001 cli exchange:refused"))).To(HaveLen(2))
		Expect(senders(heard("0 editor/1 challenge", "10 editor/2 challenge"))).To(HaveLen(2), "another version")
	})

	It("says that a client that reads the metadata may work, as mcp-remote does when it starts with its tokens",
		func() {
			steps := heard("0 node resource_metadata", "100 node server_metadata")
			Expect(diagnosis.Assemble(steps, then.Add(time.Second))).
				To(ConsistOf(HaveField("State", diagnosis.UnderWay)))
			Expect(diagnosis.Assemble(steps, then.Add(time.Hour))).
				To(ConsistOf(HaveField("Hint", ContainSubstring("still has tokens"))))
		})
})

var _ = Describe("Attempts of doctor", Label("T1"), func() {
	const one, two = "pasteport-doctor/1_(run_A)", "pasteport-doctor/1_(run_B)"

	It("are marked, and left out and counted", func() {
		all := diagnosis.Assemble(heard("0 "+one+" challenge", "10 node challenge", "20 "+one+" authorize@a",
			"30 "+one+" ended@a"), then)
		Expect(all).To(HaveLen(2))
		Expect(all[0]).To(And(HaveField("Doctor", true), HaveField("Steps", HaveLen(3))))
		clients, doctors := diagnosis.WithoutDoctor(all)
		Expect(clients).To(ConsistOf(HaveField("Agent", "node")))
		Expect(doctors).To(Equal(1))
	})

	It("are one connection for each run, which ends without a verdict about a client", func() {
		all := diagnosis.Assemble(heard("0 "+one+" challenge", "10 "+one+" authorize@a", "20 "+two+" challenge",
			"30 "+one+" exchange", "40 "+one+" exchange@a", "50 "+one+" challenge"), then)
		Expect(all).To(ConsistOf(
			And(HaveField("Agent", HaveSuffix("(run A)")), HaveField("Steps", HaveLen(5)),
				HaveField("State", diagnosis.Over), HaveField("Verdict", ContainSubstring("its own report"))),
			And(HaveField("Agent", HaveSuffix("(run B)")), HaveField("Steps", HaveLen(1)))))
		Expect(all[0].Who()).To(HavePrefix("pasteport-doctor/1"))
	})

	It("do not hide the attempt of a client that then takes the name of doctor", func() {
		forged := diagnosis.Assemble(heard("0 node authorize@a", "10 "+one+" page@a", "20 "+one+" exchange@a"), then)
		Expect(forged).To(ConsistOf(And(HaveField("Doctor", false), HaveField("Steps", HaveLen(3)))))
	})

	It("are not marked when a browser or another client takes part", func() {
		mixed := diagnosis.Assemble(heard("0 "+one+" authorize@a", "10 Mozilla/5.0 page@a"), then)
		Expect(mixed).To(ConsistOf(HaveField("Doctor", false)))
		Expect(diagnosis.Assemble(heard("0 pasteport-doctors challenge"), then)).
			To(ConsistOf(HaveField("Doctor", false)))
	})

	It("have no steps of another run, and clients have none of theirs", Label("T2"), func() {
		Expect(diagnosis.Assemble(heard("0 "+one+" challenge", "10 "+two+" challenge", "20 "+one+" authorize@a",
			"30 "+two+" authorize@b"), then)).
			To(ConsistOf(HaveField("Steps", HaveLen(2)), HaveField("Steps", HaveLen(2))))
		Expect(senders(heard("0 "+one+" server_metadata", "10 Mozilla/5.0 authorize@a", "20 node exchange@a"))).
			To(ConsistOf(HavePrefix("pasteport"), HavePrefix("Mozilla")))
	})
})

var _ = Describe("A client that has to register itself", Label("T3"), func() {
	// off returns steps of metadata without a registration endpoint, and of refused registrations.
	off := func(written ...string) []connection.Step {
		steps := heard(written...)
		for i := range steps {
			if steps[i].Kind == connection.Registration || steps[i].Kind == connection.ServerMetadata {
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
			c := diagnosis.Assemble(off(written...), then)[0]
			Expect(c.State).To(Equal(diagnosis.Stopped))
			Expect(c.Verdict).To(Equal("The client has to register itself, and self-registration is off."))
			Expect(c.Hint).To(ContainSubstring("self-registration: true"))
		}
	})

	It("is the suspected cause when the client stops at metadata without a registration endpoint", func() {
		steps := off("0 cli challenge", "1 cli server_metadata", "2 cli challenge")
		waiting := diagnosis.Assemble(steps, then.Add(time.Second))[0]
		Expect(waiting).To(And(HaveField("State", diagnosis.UnderWay), HaveField("Missing", connection.Authorize)))
		Expect(waiting.Verdict).To(ContainSubstring("A client that has to register itself stops here"))
		Expect(waiting.Hint).To(ContainSubstring("self-registration: true"))
		gone := diagnosis.Assemble(steps, then.Add(time.Hour))[0]
		Expect(gone.State).To(Equal(diagnosis.HalfWay))
		Expect(gone.Verdict).To(ContainSubstring("Probably it has to register itself"))
		on := diagnosis.Assemble(heard("0 cli challenge", "1 cli server_metadata"), then.Add(time.Hour))[0]
		Expect(on.Verdict).NotTo(ContainSubstring("register"))
	})
})

package features_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// ClientGroup is a line of the check clients.login.
type ClientGroup struct {
	Answer, Reason, Remedy string
	Names                  []string
}

var _ = Describe("Telling which well-known clients can log in", Label("doctor", "T4"), func() {
	// listed returns the clients with an answer, by the reason.
	listed := func(d Diagnosis, answer string) map[string][]string {
		found := map[string][]string{}
		for _, group := range d.Of("clients.login").Clients {
			if group.Answer == answer {
				found[group.Reason] = group.Names
			}
		}
		return found
	}
	login := func(ctx context.Context, world *World, more ...string) Diagnosis {
		return Diagnose(ctx,
			append([]string{world.MCP(), "--token", world.Token, "--origin", world.Issuer}, more...)...)
	}

	It("names those that register themselves, with the remedy, and does not fail", func(ctx SpecContext) {
		d := login(ctx, NewWorld())
		Expect(d.Code).To(BeZero())
		Expect(d.Result).To(Equal("ok"))
		Expect(listed(d, "can")[""]).
			To(And(ContainElements("Claude Code", "Codex", "VS Code", "Zed"), Not(ContainElement("Cursor"))))
		Expect(listed(d, "cannot")["because they register themselves and self-registration is off"]).To(Equal([]string{
			"Cursor", "Gemini CLI", "opencode", "LM Studio", "Warp", "Raycast", "Cline", "Amp",
			"GitHub Copilot in JetBrains", "mcp-remote", "MCP Inspector",
		}))
		Expect(d.Next).To(And(HavePrefix("Claude Code, Codex, VS Code and others can connect to"),
			ContainSubstring("Cursor, Gemini CLI, opencode and others cannot, because they register themselves "+
				"and self-registration is off: set self-registration: true")))
	})

	It("has nothing to advise when they can register", func(ctx SpecContext) {
		d := login(ctx, NewWorld(selfRegistration))
		Expect(listed(d, "can")[""]).To(ContainElements("Claude Code", "Cursor", "mcp-remote"))
		Expect(d.Next).To(HavePrefix("nothing to do: Claude Code, Codex, VS Code and others can connect to"))
	})

	It("prints a line for each answer", func(ctx SpecContext) {
		printed := Doctor(ctx, "", NewWorld().MCP())
		Expect(printed.Out).To(ContainSubstring("\n         can: Claude Code, Codex"))
		Expect(printed.Out).
			To(ContainSubstring(
				"\n         cannot, because they register themselves and self-registration is off: Cursor, "))
		Expect(printed.Out).
			To(MatchRegexp(`next: Claude Code, Codex, VS Code and others should be able to log in; Cursor, .* ` +
				`cannot, .*; the rest was skipped`))
	})

	It("asks the server about a client with a request of the client's own redirect URI, which is marked as doctor's",
		Label("T1"), func(ctx SpecContext) {
			world := NewWorld(func(config *service.Config) { config.AllowClients = []string{"elsewhere.example"} })
			client := world.NewClient().ID
			refused := Diagnose(ctx, world.MCP(), "--ca", Trust(world.Clients.server), "--clients="+client)
			Expect(refused.Of("clients.login").Clients).To(ConsistOf(And(
				HaveField("Answer", "cannot"), HaveField("Reason", ContainSubstring("the page shows 403")),
				HaveField("Names", ConsistOf(client)))))
			Expect(refused.Next).
				To(And(HavePrefix("no client of those that were checked should be able"),
					ContainSubstring("pasteport trace --doctor")))
			Eventually(func() []Story { return world.Stories(ctx) }).WithContext(ctx).WithTimeout(patience).
				Should(ContainElement(HaveField("Path", ContainSubstring("authorize:refused"))))
			Expect(strings.Count(Run(ctx, append([]string{"connections"}, world.Kept()...)...).Out, "\n")).
				To(Equal(4), "only doctor has come")
		})

	It("does not tell about a document that this computer cannot fetch", func(ctx SpecContext) {
		world := NewWorld()
		client, unknown := world.NewClient().ID, world.Clients.URL("/none.json")
		d := Diagnose(ctx, world.MCP(), "--ca", Trust(world.Clients.server), "--clients="+client+","+unknown)
		Expect(d.Code).To(BeZero())
		Expect(listed(d, "can")[""]).To(Equal([]string{client}))
		Expect(listed(d, "not checked")["because this computer cannot fetch their documents"]).
			To(Equal([]string{unknown}))
	})

	It("sends no authorization request for clients unless it is told to", func(ctx SpecContext) {
		world := NewWorld()
		fetches := world.Clients.Fetches()
		Diagnose(ctx, world.MCP())
		Expect(world.Clients.Fetches()).To(Equal(fetches))
		Expect(world.Stories(ctx)).NotTo(ContainElement(HaveField("Path", ContainSubstring("client_metadata"))))
	})
})

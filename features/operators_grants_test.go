package features_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/oauth"
)

// operatorsGrant is a line of "pasteport grants list --json".
type operatorsGrant struct {
	ID, Client, Name, Subject, Label string
	Resource                         string
	Server                           string `json:"resource_name"`
	Scopes                           []string
	Waiting                          bool
	CreatedAt                        time.Time  `json:"created_at"`
	LastUsedAt                       *time.Time `json:"last_used_at"`
	EndsBy                           time.Time  `json:"ends_by"`
}

func (w *World) Grants(ctx context.Context, flags ...string) (grants []operatorsGrant) {
	GinkgoHelper()
	listed := Run(ctx, slices.Concat([]string{"grants", "list", "--json"}, w.Kept(), flags)...)
	Expect(listed.Code).To(BeZero(), listed.Err)
	Expect(json.Unmarshal([]byte(listed.Out), &grants)).To(Succeed())
	return grants
}

func hostOf(address string) string {
	GinkgoHelper()
	return must(url.Parse(address)).Host
}

var _ = Describe("Listing and ending grants beside a running service", Label("stores"), func() {
	var world *World
	var client *Client
	BeforeEach(func() {
		world = NewWorld()
		client = world.NewClient()
	})
	end := func(ctx context.Context, typed string, args ...string) Ran {
		return RunTyping(ctx, typed, slices.Concat([]string{"grants", "end"}, world.Kept(), args)...)
	}

	It("lists every active grant, oldest first, and no secrets", Label("H3"), func(ctx SpecContext) {
		tokens := client.Connect(ctx)
		world.Call(ctx, tokens.Access)
		author := world.TokenFor(ctx, "ada", demosite.Author)
		client.Consent(ctx).Approve(ctx, author)
		client.Revoke(ctx, client.Connect(ctx).Refresh)
		Eventually(world.Grants).WithContext(ctx).WithTimeout(patience).
			Should(ContainElement(HaveField("LastUsedAt", Not(BeNil()))))
		grants := world.Grants(ctx)
		Expect(grants).To(HaveLen(2))
		Expect(grants[0]).To(And(HaveField("Client", hostOf(client.ID)), HaveField("Name", "Spec Client"),
			HaveField("Subject", "editor"),
			HaveField("Scopes", ConsistOf("mcp", "offline_access")), HaveField("Waiting", false),
			HaveField("LastUsedAt", Not(BeNil()))))
		Expect(grants[0].EndsBy).To(BeTemporally(">", grants[0].CreatedAt.Add(24*time.Hour)))
		Expect(grants[1]).
			To(And(HaveField("Subject", "ada"), HaveField("Waiting", true), HaveField("LastUsedAt", BeNil())))
		shown := Run(ctx, append([]string{"grants", "list"}, world.Kept()...)...)
		Expect(shown.Out).
			To(And(HavePrefix("ID "), ContainSubstring(oauth.ShortID(grants[0].ID)), ContainSubstring("never"),
				ContainSubstring("Spec Client"), MatchRegexp(`(?m) ada +ada +never$`)))
		Expect(strings.Split(shown.Out, "\n")[0]).To(ContainSubstring("ACCOUNT"))
		Expect(strings.Split(shown.Out, "\n")).To(HaveEach(Satisfy(fitsTerminal)))
		Expect(strings.Count(shown.Out, "\n")).To(Equal(3))
		Expect(shown.Out).
			NotTo(Or(ContainSubstring(tokens.Access), ContainSubstring(tokens.Refresh), ContainSubstring(world.Token),
				ContainSubstring(author)))
	})

	It("shows the URL of a server whose name it cannot know", Label("H3"), func(ctx SpecContext) {
		client.Connect(ctx)
		settings := filepath.Join(GinkgoT().TempDir(), "pasteport.yaml")
		for setting, shown := range map[string]string{"": world.MCP(), "site-name: The Gazette\n": "The Gazette"} {
			Expect(os.WriteFile(settings, []byte("issuer: "+world.Issuer+"\n"+setting), 0o600)).To(Succeed())
			Expect(world.Grants(ctx, "--config", settings)).To(ConsistOf(HaveField("Server", shown)))
		}
	})

	It("lists the grants that were made with a token, before and after a new server secret", Label("H3"),
		func(ctx SpecContext) {
			client.Connect(ctx)
			world.RotateKeys(ctx)
			client.Authorize(ctx)
			client.ConnectAs(ctx, world.TokenFor(ctx, "ada", demosite.Author))
			all := world.Grants(ctx)
			list := func(typed string, args ...string) Ran {
				return RunTyping(ctx, typed,
					slices.Concat([]string{"grants", "list", "--token"}, args, world.Kept())...)
			}
			var listed []operatorsGrant
			shown := list(world.Token+"\n", "-", "--json")
			Expect(json.Unmarshal([]byte(shown.Out), &listed)).To(Succeed(), shown.Err)
			Expect(listed).To(Equal(all[:2]))
			Expect(shown.Out + shown.Err).NotTo(ContainSubstring(world.Token))
			Expect(list("an-unknown-token", "-")).To(And(HaveField("Code", 1), HaveField("Out", ""),
				HaveField("Err", ContainSubstring("no active grant was made with this token"))))
			Expect(list("", "")).To(HaveField("Code", 2))
			Expect(list("", world.Token)).
				To(And(HaveField("Code", 2), HaveField("Err", Not(ContainSubstring(world.Token)))))
			Expect(list(world.Token, "-", "--subject", "ada")).To(HaveField("Code", 2))
		})

	DescribeTable("filters the list", func(ctx SpecContext, found int, flags func() []string) {
		client.Connect(ctx)
		client.ConnectAs(ctx, world.TokenFor(ctx, "ada", demosite.Author))
		Expect(world.Grants(ctx, flags()...)).To(HaveLen(found))
	},
		Entry("by client", 2, func() []string { return []string{"--client", strings.ToUpper(hostOf(client.ID))} }),
		Entry("by person", 1, func() []string { return []string{"--subject", "ada"} }),
		Entry("by name", 2, func() []string { return []string{"--name", "SPEC client"} }),
		Entry("by both", 0, func() []string { return []string{"--client", "client.example", "--subject", "ada"} }),
	)

	It("ends one grant immediately and permanently, and no others", Label("I12", "E9"), func(ctx SpecContext) {
		ended, kept := client.Connect(ctx), client.Connect(ctx)
		done := end(ctx, "", "--yes", world.Grants(ctx)[0].ID[12:20])
		Expect(done.Code).To(BeZero(), done.Err)
		Expect(done.Out).To(HaveSuffix("ended: 1\n"))
		Expect(done.Err).To(And(ContainSubstring("grant_ended"), ContainSubstring("reason=ended_by_operator")))
		Expect(world.Call(ctx, ended.Access)).To(BeChallenged(world, "invalid_token"))
		Expect(client.Token(ctx, client.Refresh(ended.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
		Expect(world.Call(ctx, kept.Access).StatusCode).To(Equal(http.StatusOK))
		Expect(world.Grants(ctx)).To(HaveLen(1))
	})

	DescribeTable("ends several grants, made under any server secret",
		func(ctx SpecContext, left int, choose ...string) {
			first := client.Connect(ctx)
			world.RotateKeys(ctx)
			client.Connect(ctx)
			client.ConnectAs(ctx, world.TokenFor(ctx, "ada", demosite.Author))
			Expect(end(ctx, "", append(choose, "--yes")...).Code).To(BeZero())
			Expect(world.Grants(ctx)).To(HaveLen(left))
			Expect(world.Call(ctx, first.Access)).To(BeChallenged(world, "invalid_token"))
		},
		Entry("all of them", 0, "--all"),
		Entry("those of one person", 1, "--subject", "editor"),
		Entry("those of clients with a name", 0, "--name", "Spec Client"),
	)

	It("ends no grant for an empty token beside another selection", func(ctx SpecContext) {
		client.Connect(ctx)
		Expect(end(ctx, "", "--token", "", "--all", "--yes").Code).To(Equal(2))
		Expect(world.Grants(ctx)).To(HaveLen(1))
	})

	It("ends every grant that was made with a token, without a question", Label("J10"), func(ctx SpecContext) {
		leaked := client.Connect(ctx)
		world.RotateKeys(ctx)
		client.Authorize(ctx)
		kept := client.ConnectAs(ctx, world.TokenFor(ctx, "ada", demosite.Author))
		done := end(ctx, "\u200b`"+world.Token+"`\n", "--token", "-")
		Expect(done.Code).To(BeZero(), done.Err)
		Expect(done.Out).To(Equal("ended: 2\n"))
		Expect(done.Err).To(And(ContainSubstring("reason=ended_by_operator"), Not(ContainSubstring(world.Token))))
		Expect(world.Call(ctx, leaked.Access)).To(BeChallenged(world, "invalid_token"))
		Expect(world.Call(ctx, kept.Access).StatusCode).To(Equal(http.StatusOK))
		Expect(end(ctx, world.Token, "--token", "-")).To(And(HaveField("Code", 1), HaveField("Out", ""),
			HaveField("Err", ContainSubstring("no active grant was made with this token"))))
	})

	It("lists and ends the grants of a key among several fields, or says that it cannot",
		Label("gateway", "B23"), func(ctx SpecContext) {
			upstream := NewUpstreamReading(basicCredentials, "ann:the-long-key-of-ann-1234")
			listed := map[string]string{service.VerifierFile: "Spec Client",
				service.VerifierUpstream: "list them by --client, --name or --subject"}
			for verifier, ended := range map[string]string{service.VerifierFile: "ended: 1",
				service.VerifierUpstream: "user, token together: end them by --client, --name or --subject"} {
				lines := "issuer: https://cms.example.com\nupstream: " + upstream.URL + "/mcp\nverifier: " + verifier +
					"\nfields: [{name: user}, {name: token}]\n"
				settings := filepath.Join(GinkgoT().TempDir(), "pasteport.yaml")
				Expect(os.WriteFile(settings, []byte(lines), 0o600)).To(Succeed())
				gateway := NewGateway(upstream.URL+"/mcp", askingFor([]bootstrap.HostField{{Name: "user"},
					{Name: "token", Secret: true}}, "Authorization: Basic {base64(user:token)}"),
					func(c *service.Config) {
						if c.Verification.Verifier = verifier; verifier == service.VerifierFile {
							c.Verification.TokenFile = tokenFileOf(ctx, "the-long-key-of-ann-1234")
						}
					})
				Expect(gateway.NewClient().Consent(ctx).enter(ctx, "user", "ann", "token",
					"the-long-key-of-ann-1234").StatusCode).
					To(Equal(http.StatusSeeOther))
				shown := RunTyping(ctx, "the-long-key-of-ann-1234",
					append([]string{"grants", "list", "--token", "-", "--config", settings}, gateway.Kept()...)...)
				Expect(shown.Out + shown.Err).To(ContainSubstring(listed[verifier]))
				done := RunTyping(ctx, "the-long-key-of-ann-1234",
					append([]string{"grants", "end", "--token", "-", "--config", settings}, gateway.Kept()...)...)
				Expect(done.Out + done.Err).To(ContainSubstring(ended))
			}
		})

	It("takes the fingerprint of a person without a name as the table shows it", Label("gateway"),
		func(ctx SpecContext) {
			gateway := NewGateway(NewUpstream(apiKey).URL + "/mcp")
			gateway.NewClient().Connect(ctx)
			table := Run(ctx, append([]string{"grants", "list"}, gateway.Kept()...)...).Out
			shown := regexp.MustCompile(`token-\S+…`).FindString(table)
			Expect(gateway.Grants(ctx, "--subject", shown)).To(HaveLen(1), table)
			Expect(gateway.Grants(ctx, "--subject", "token-0123456789ab…")).To(BeEmpty())
		})

	It("escapes what does not print in JSON", func(ctx SpecContext) {
		world.Clients.Publish(strings.TrimPrefix(client.ID, world.Clients.URL("")),
			`{"client_id": "`+client.ID+
				`", "client_name": "A\u202e\u200bé\udb40\udc41", "redirect_uris": ["http://127.0.0.1/callback"]}`)
		client.Authorize(ctx)
		Expect(world.Grants(ctx)).To(ConsistOf(HaveField("Name", "A\u202e\u200bé\U000e0041")))
		Expect(Run(ctx, slices.Concat([]string{"grants", "list", "--json"}, world.Kept())...).Out).
			To(ContainSubstring(`"name": "A\u202e\u200bé\udb40\udc41"`))
	})

	DescribeTable("asks for confirmation", func(ctx SpecContext, typed string, code, left int) {
		client.Connect(ctx)
		answered := end(ctx, typed, "--all")
		Expect(answered.Code).To(Equal(code))
		Expect(answered.Err).To(ContainSubstring("End 1 grant? "))
		Expect(world.Grants(ctx)).To(HaveLen(left))
	},
		Entry("and continues after yes", "yes\n", 0, 0),
		Entry("and stops after no", "n\n", 1, 1), Entry("and stops at the end of input", "", 1, 1),
		Entry("and stops after any other answer", "\nyes\n", 1, 1),
	)

	DescribeTable("ends no grant and fails for", func(ctx SpecContext, code int, said string, args ...string) {
		client.Connect(ctx)
		client.Connect(ctx)
		refused := end(ctx, "", append(args, "--yes")...)
		Expect(refused.Code).To(Equal(code))
		Expect(refused.Out + refused.Err).To(ContainSubstring(said))
		Expect(world.Grants(ctx)).To(HaveLen(2))
	},
		Entry("no arguments", 2, "name the grants"),
		Entry("--all with --subject", 2, "--all alone", "--all", "--subject", "editor"),
		Entry("a token on the command line", 2, "visible to other users", "--token", "s3cret"),
		Entry("an id with --subject", 2, "name one grant", "0", "--subject", "editor"),
		Entry("an unknown id", 1, "0 active grants have an id that starts with", "no-such-id"),
		Entry("an unknown person", 1, "No active grants match", "--subject", "eve"),
	)

	It("escapes control characters in subjects", func(ctx SpecContext) {
		site := NewTokenSite(`{"subject":"ada\u001b[2J\u202e\nbob"}`)
		world = NewWorld(func(config *service.Config) {
			config.Verification = overHTTP.configure(site.site.URL("/token"))
		})
		world.NewClient().Connect(ctx)
		Expect(Run(ctx, append([]string{"grants", "list"}, world.Kept()...)...).Out).
			To(ContainSubstring("ada\ufffd[2J\ufffd\ufffdbob"))
	})

	It("requires an existing data folder", func(ctx SpecContext) {
		refused := Run(ctx, "grants", "list", "--data", "/nowhere")
		Expect(refused.Code).To(Equal(1))
		Expect(refused.Err).To(ContainSubstring("name its folder with --data"))
	})
})

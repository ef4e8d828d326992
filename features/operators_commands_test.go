package features_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/bootstrap/cli"
)

var _ = Describe("Reading the trace on the command line", Label("trace", "stores"), func() {
	var operated *Operated
	run := func(ctx context.Context, args ...string) Ran { return Run(ctx, append(args, operated.Kept()...)...) }
	BeforeEach(func(ctx SpecContext) {
		operated = Operate()
		operated.Discover(ctx)
		client := operated.NewClient()
		operated.Call(ctx, client.Connect(ctx).Access)
		operated.Newest(ctx, wholeWay)
		client.ID += "x"
		client.AskFor(ctx, client.Request())
		operated.Newest(ctx, "authorize client_metadata:refused")
	})

	It("lists all or only unfinished connections", func(ctx SpecContext) {
		all := run(ctx, "connections")
		Expect(all.Code).To(Equal(0))
		Expect(all.Out).To(And(ContainSubstring("connected"), ContainSubstring("stopped"),
			ContainSubstring("next: pasteport trace ID --data "+operated.Dir)))
		var listed []Traced
		Expect(json.Unmarshal([]byte(run(ctx, "connections", "--unfinished", "--json").Out), &listed)).To(Succeed())
		Expect(listed).To(ConsistOf(HaveField("State", "stopped"), HaveField("State", "under way")))
	})

	It("shows the newest connection, or the one with this id prefix, without colour unless it writes to a terminal",
		func(ctx SpecContext) {
			newest := run(ctx, "trace")
			Expect(newest.Code).To(Equal(0))
			Expect(newest.Out).To(And(ContainSubstring("  2  "), ContainSubstring("refused [C42]"),
				ContainSubstring("The attempt stopped at the step"), Not(ContainSubstring("\x1b"))))
			Expect(run(ctx, "trace", operated.Traces(ctx)[1].ID[12:20]).Out).
				To(And(ContainSubstring("  7  "), ContainSubstring("The client is connected")))
			var shown Traced
			Expect(json.Unmarshal([]byte(run(ctx, "trace", "--json", operated.Traces(ctx)[1].ID).Out), &shown)).
				To(Succeed())
			Expect(shown.Path()).To(Equal(wholeWay))
		})

	// follow runs the command; stop interrupts it.
	follow := func(ctx context.Context, args ...string) (out *gbytes.Buffer, stop func()) {
		following, interrupt := context.WithCancel(ctx)
		out, ended := gbytes.NewBuffer(), make(chan int, 1)
		go func() {
			ended <- cli.Run(following, append(append([]string{"trace", "--follow"}, args...), operated.Kept()...), nil,
				out, GinkgoWriter)
		}()
		return out, func() {
			interrupt()
			Eventually(ended).WithTimeout(patience).Should(Receive(Equal(0)))
		}
	}

	It("follows one connection, from its first step", func(ctx SpecContext) {
		client := operated.NewClient()
		page := client.Consent(ctx)
		out, stop := follow(ctx, operated.Newest(ctx, "authorize client_metadata page").ID, "--json")
		Eventually(out).WithTimeout(patience).Should(gbytes.Say(`"step":"authorize"`))
		operated.NewClient().Connect(ctx)
		page.Approve(ctx, operated.Token)
		Eventually(out).WithTimeout(patience).Should(gbytes.Say(`"step":"code_issued"`))
		stop()
		Expect(strings.Count(string(out.Contents()), "\n")).To(Equal(5), "one line per step")
	})

	It("shows the login that failed, and not a probe after it", func(ctx SpecContext) {
		Post(ctx, operated.MCP(), nil, with("User-Agent", "some client"))
		operated.Newest(ctx, "challenge")
		Expect(run(ctx, "trace").Out).To(ContainSubstring("refused [C42]"))
	})

	Describe("after doctor", Label("T1"), func() {
		doctor := func(ctx context.Context) {
			Expect(Doctor(ctx, "", operated.MCP(), "--token", operated.Token).Code).To(BeZero())
			Eventually(func() string {
				return run(ctx, "connections").Out
			}).WithContext(ctx).WithTimeout(patience).Should(ContainSubstring("of doctor hidden"))
		}

		It("hides its attempts, says how many there are, and lists them with --doctor", func(ctx SpecContext) {
			doctor(ctx)
			clients := run(ctx, "connections").Out
			Expect(clients).
				To(And(ContainSubstring("connected"), ContainSubstring("hidden: pasteport connections --doctor"),
					Not(ContainSubstring("pasteport-doctor"))))
			Expect(run(ctx, "connections", "--doctor").Out).
				To(And(ContainSubstring("pasteport-doctor/"), Not(ContainSubstring("hidden"))))
			var all []map[string]any
			Expect(json.Unmarshal([]byte(run(ctx, "connections", "--json").Out), &all)).To(Succeed())
			Expect(all).To(And(ContainElement(HaveKeyWithValue("doctor", true)),
				ContainElement(Not(HaveKey("doctor")))))
		})

		It("shows the newest attempt of a client, and one of doctor by its id", func(ctx SpecContext) {
			doctor(ctx)
			Expect(run(ctx, "trace").Out).
				To(And(ContainSubstring("refused [C42]"), ContainSubstring("of doctor hidden")))
			Expect(run(ctx, "trace", "--doctor").Out).To(ContainSubstring("agent    pasteport-doctor/"))
			own := slices.IndexFunc(operated.Traces(ctx), func(t Traced) bool { return t.Doctor })
			Expect(run(ctx, "trace", operated.Traces(ctx)[own].ID).Out).
				To(And(ContainSubstring("agent    pasteport-doctor/"), Not(ContainSubstring("hidden"))))
		})

		It("hides its attempts on the admin page, with a link to them", func(ctx SpecContext) {
			doctor(ctx)
			page := operated.AskAdmin(ctx, "/").Text
			Expect(page).To(And(ContainSubstring("of pasteport doctor hidden"),
				ContainSubstring(`href="/?doctor"`), Not(ContainSubstring("(doctor)"))))
			Expect(strings.Count(operated.AskAdmin(ctx, "/?doctor").Text, "(doctor)")).To(BeNumerically(">", 0))
		})

		It("leaves its steps out while it follows, and says so", func(ctx SpecContext) {
			out, stop := follow(ctx)
			Eventually(out).WithTimeout(patience).Should(gbytes.Say("following"))
			doctor(ctx)
			operated.NewClient().Connect(ctx)
			Eventually(out).WithTimeout(patience).Should(gbytes.Say("steps of doctor are hidden"))
			Eventually(out).WithTimeout(patience).Should(gbytes.Say("code exchanged"))
			stop()
			Expect(string(out.Contents())).
				To(And(MatchRegexp(`hidden: \d+ steps? of doctor`), Not(ContainSubstring("F5"))),
					"only doctor meets F5")
		})

		It("marks every attempt of a whole login", func(ctx SpecContext) {
			d := Doctor(ctx, "", operated.MCP(), "--token", operated.Token)
			Expect(d.Code).To(BeZero(), d.Out)
			byDoctor := func() (paths []string) {
				for _, traced := range operated.Traces(ctx) {
					if traced.Doctor {
						paths = append(paths, traced.Path())
					}
				}
				return paths
			}
			Eventually(byDoctor).WithContext(ctx).WithTimeout(patience).
				Should(ContainElement(And(ContainSubstring("code_issued"), ContainSubstring("ended"))))
			Expect(run(ctx, "connections").Out).
				To(And(ContainSubstring("of doctor hidden"), Not(ContainSubstring("ended"))))
		})
	})

	It("says that only doctor has tried to connect", Label("T1"), func(ctx SpecContext) {
		site := NewWorld()
		Expect(Doctor(ctx, "", site.MCP()).Code).To(BeZero())
		Eventually(func() Ran {
			return Run(ctx, append([]string{"trace"}, site.Kept()...)...)
		}).WithContext(ctx).WithTimeout(patience).
			Should(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("only doctor has tried"))))
	})

	It("shows the last steps of a stopped service", func(ctx SpecContext) {
		operated.NewClient().Connect(ctx)
		operated.Shutdown()
		Expect(run(ctx, "trace").Out).To(ContainSubstring("code exchanged"))
	})

	It("does not list ended connections as unfinished, and truncates client input", func(ctx SpecContext) {
		Post(ctx, operated.MCP(), nil, with("User-Agent", strings.Repeat("x", 250)))
		operated.Newest(ctx, "challenge")
		Expect(run(ctx, "grants", "end", "--all", "--yes").Code).To(Equal(0))
		Expect(run(ctx, "connections").Out).To(And(ContainSubstring("operator ended it"), ContainSubstring("xxx…"),
			Not(ContainSubstring(strings.Repeat("x", 41)))))
		Expect(run(ctx, "connections", "--unfinished").Out).NotTo(ContainSubstring("operator ended it"))
	})

	It("names the remedy for an unknown id, an empty data folder, and when no client has come", func(ctx SpecContext) {
		Expect(run(ctx, "trace", "no-such-id")).
			To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("pasteport connections lists them"))))
		Expect(run(ctx, "trace", "one", "two")).
			To(And(HaveField("Code", 2), HaveField("Err", ContainSubstring("one attempt"))))
		Expect(run(ctx, "trace", "no-such-id", "--follow")).
			To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("pasteport connections lists them"))))
		Expect(Run(ctx, "connections", "--data", GinkgoT().TempDir())).
			To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("--data"))))
		Expect(Run(ctx, append([]string{"connections"}, NewWorld().Kept()...)...)).
			To(And(HaveField("Code", 0), HaveField("Out", And(ContainSubstring("No client has reached this service"),
				ContainSubstring("certificate"), ContainSubstring("pasteport doctor")))))
	})
})

var _ = Describe("Listing the well-known clients", Label("T4", "CIMD"), func() {
	BeforeEach(func() { workingFolder() })

	It("says which clients the settings admit, and whose documents cannot be fetched", func(ctx SpecContext) {
		write("pasteport.yaml", "metadata-proxy: http://127.0.0.1:1\nallow-clients: [Claude.ai]\n"+
			"self-registration: off\n")
		ran := Run(ctx, "clients", "known")
		Expect(ran.Code).To(Equal(1))
		Expect(ran.Err).To(And(ContainSubstring("client-documents"), ContainSubstring("metadata-proxy")))
		Expect(ran.Out).To(And(
			MatchRegexp(`(?m)^Claude Code +yes +fetch the client metadata document: `),
			MatchRegexp(`(?m)^VS Code +no: allow-clients +`),
			MatchRegexp(`(?m)^Cursor +no: self-registration +registers itself$`)))
	})

	It("admits all clients without a list", func(ctx SpecContext) {
		ran := Run(ctx, "clients", "known", "--metadata-proxy", "http://127.0.0.1:1")
		Expect(ran.Out).To(And(ContainSubstring("ChatGPT"), ContainSubstring("mcp-remote"),
			Not(ContainSubstring("no: "))))
	})

	It("is recommended by the trace when a document cannot be fetched", Label("trace"), func(ctx SpecContext) {
		operated := Operate()
		for rule, answer := range map[string]http.HandlerFunc{
			"C41": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"C42": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		} {
			client := operated.NewClient()
			operated.Clients.Serve(client.path(), answer)
			client.AskFor(ctx, client.Request())
			Eventually(func() []Traced { return operated.Traces(ctx) }).WithContext(ctx).WithTimeout(patience).
				Should(ContainElement(And(HaveField("Client", client.ID),
					HaveField("Hint", ContainSubstring("pasteport clients known")))), rule)
		}
	})
})

var _ = Describe("Mistyping a command", func() {
	DescribeTable("names similar commands after", func(ctx SpecContext, complaint, help string, args ...string) {
		Expect(Run(ctx, args...)).
			To(Equal(Ran{2, "", "pasteport: unknown command: " + complaint + "\nTry: " + help + " --help\n"}))
	},
		Entry("a mistyped command with flags", `did you mean "pasteport gateway"?`, "pasteport", "gatway", "--dev",
			"--upstream=http://127.0.0.1:9000/mcp"),
		Entry("a mistyped subcommand", `did you mean "pasteport keys rotate"?`, "pasteport keys",
			"keys", "rotat", "--json"),
		Entry("the beginning of several", `did you mean "pasteport serve" or "pasteport server" or "pasteport store"?`,
			"pasteport", "s"),
		Entry("what may be a secret, without repeating it", `no command of "pasteport" has a similar name`, "pasteport",
			"demo_known-to-few"),
	)

	It("still names the flag when there is no command", func(ctx SpecContext) {
		Expect(Run(ctx, "--upstrem=x").Err).To(HavePrefix("pasteport: unknown flag: --upstrem"))
		Expect(Run(ctx, "keys", "list", "--jsn").Err).To(HavePrefix("pasteport: unknown flag: --jsn"))
	})
})

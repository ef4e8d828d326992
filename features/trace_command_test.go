package features_test

import (
	"context"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/bootstrap/cli"
)

var _ = Describe("Reading the trace on the command line", Label("trace"), func() {
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
		Expect(all.Out).To(And(ContainSubstring("connected"), ContainSubstring("stopped"), ContainSubstring("next: pasteport trace ID --data "+operated.Dir)))
		var listed []Traced
		Expect(json.Unmarshal([]byte(run(ctx, "connections", "--unfinished", "--json").Out), &listed)).To(Succeed())
		Expect(listed).To(ConsistOf(HaveField("State", "stopped")))
	})

	It("shows the newest connection, or the one with this id prefix, without colour unless it writes to a terminal", func(ctx SpecContext) {
		newest := run(ctx, "trace")
		Expect(newest.Code).To(Equal(0))
		Expect(newest.Out).To(And(ContainSubstring("  2  "), ContainSubstring("refused [C42]"), ContainSubstring("The attempt stopped at the step"), Not(ContainSubstring("\x1b"))))
		Expect(run(ctx, "trace", operated.Traces(ctx)[1].ID[12:20]).Out).To(And(ContainSubstring(" 10  "), ContainSubstring("The client is connected")))
		var shown Traced
		Expect(json.Unmarshal([]byte(run(ctx, "trace", "--json", operated.Traces(ctx)[1].ID).Out), &shown)).To(Succeed())
		Expect(shown.Path()).To(Equal(wholeWay))
	})

	It("follows steps until it is interrupted", func(ctx SpecContext) {
		following, stop := context.WithCancel(ctx)
		defer stop()
		out, ended := gbytes.NewBuffer(), make(chan int, 1)
		go func() {
			ended <- cli.Run(following, append([]string{"trace", "--follow"}, operated.Kept()...), nil, out, GinkgoWriter)
		}()
		Eventually(out).WithTimeout(patience).Should(gbytes.Say("following"))
		operated.NewClient().Connect(ctx)
		Eventually(out).WithTimeout(patience).Should(gbytes.Say("code exchanged"))
		stop()
		Eventually(ended).WithTimeout(patience).Should(Receive(Equal(0)))
	})

	It("follows one connection, from its first anonymous request", func(ctx SpecContext) {
		Post(ctx, operated.MCP(), nil, with("User-Agent", "some client"))
		begun := operated.Newest(ctx, "challenge")
		following, stop := context.WithCancel(ctx)
		defer stop()
		out, ended := gbytes.NewBuffer(), make(chan int, 1)
		go func() {
			ended <- cli.Run(following, append([]string{"trace", begun.ID[:8], "--follow", "--json"}, operated.Kept()...), nil, out, GinkgoWriter)
		}()
		Eventually(out).WithTimeout(patience).Should(gbytes.Say(`"step":"challenge"`))
		operated.NewClient().Connect(ctx)
		Eventually(out).WithTimeout(patience).Should(gbytes.Say(`"step":"authorize"`))
		Eventually(out).WithTimeout(patience).Should(gbytes.Say(`"step":"exchange"`))
		stop()
		Eventually(ended).WithTimeout(patience).Should(Receive(Equal(0)))
		Expect(strings.Count(string(out.Contents()), "\n")).To(Equal(7), "one line per step")
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
		Expect(run(ctx, "connections").Out).To(And(ContainSubstring("operator ended it"), ContainSubstring("xxx..."), Not(ContainSubstring(strings.Repeat("x", 41)))))
		Expect(run(ctx, "connections", "--unfinished").Out).NotTo(ContainSubstring("operator ended it"))
	})

	It("names the remedy for an unknown id, and for an empty data folder", func(ctx SpecContext) {
		Expect(run(ctx, "trace", "no-such-id")).To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("pasteport connections lists them"))))
		Expect(run(ctx, "trace", "one", "two")).To(And(HaveField("Code", 2), HaveField("Err", ContainSubstring("one attempt"))))
		Expect(run(ctx, "trace", "no-such-id", "--follow")).To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("pasteport connections lists them"))))
		Expect(Run(ctx, "connections", "--data", GinkgoT().TempDir())).To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("--data"))))
	})
})

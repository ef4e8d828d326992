package features_test

import (
	"encoding/json"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// jsonLines parses each line as a JSON object, and fails for any other line.
func jsonLines(text string) (lines []map[string]any) {
	GinkgoHelper()
	for line := range strings.Lines(text) {
		var fields map[string]any
		Expect(json.Unmarshal([]byte(line), &fields)).To(Succeed(), line)
		lines = append(lines, fields)
	}
	return lines
}

var _ = Describe("Starting a service", func() {
	It("says nothing of the connections that it can hold, except at level debug", func() {
		Expect(NewWorld().Log.String()).NotTo(MatchRegexp(`"INFO".*limiting the connections`))
	})
})

var _ = Describe("JSON log lines", Label("operations"), func() {
	run := func(args ...string) *gexec.Session {
		base := []string{"--dev", "--log-format", "json", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0",
			"--data", GinkgoT().TempDir()}
		return BuildBinary().Run(nil, append(args, base...)...)
	}

	It("are all that the demo site prints at its start", func(SpecContext) {
		service := run("serve")
		Eventually(service.Out).WithTimeout(patience).Should(gbytes.Say(`"msg":"this is the demo site`))
		Expect(service.Terminate().Wait(patience).ExitCode()).To(Equal(0))
		lines := jsonLines(string(service.Out.Contents()))
		for _, beginning := range []string{
			"demo token: ", "serving http://127.0.0.1:", "  Claude Code    claude mcp add ", "grants, connections",
		} {
			Expect(lines).To(ContainElement(HaveKeyWithValue("msg", HavePrefix(beginning))))
		}
		jsonLines(string(service.Err.Contents()))
	}, SpecTimeout(time.Minute))

	It("are all that a gateway prints at its start, with the state of its upstream", func(SpecContext) {
		service := run("gateway", "--upstream", "http://127.0.0.1:1/mcp")
		Eventually(service.Out).WithTimeout(patience).
			Should(gbytes.Say(`"msg":"warning: upstream http://127\.0\.0\.1:1: `))
		Expect(service.Terminate().Wait(patience).ExitCode()).To(Equal(0))
		jsonLines(string(service.Out.Contents()))
		jsonLines(string(service.Err.Contents()))
	}, SpecTimeout(time.Minute))

	DescribeTable("have the error of a start that fails:", func(problem string, args ...string) {
		service := run(append([]string{"serve"}, args...)...)
		Expect(service.Wait(patience).ExitCode()).To(Equal(1))
		lines := jsonLines(string(service.Err.Contents()))
		Expect(lines).To(ContainElement(And(HaveKeyWithValue("level", "ERROR"),
			HaveKeyWithValue("error", ContainSubstring(problem)))))
	},
		Entry("a mistake in a setting", "audit-arguments is set, but neither", "--audit-arguments"),
		Entry("a file that cannot be opened", "opening the audit file", "--audit-file", "/dev/null/calls.jsonl"),
	)
})

var _ = Describe("A duration in the log", Label("operations", "audit"), func() {
	It("has its unit in the key", func(ctx SpecContext) {
		world := NewWorld(func(config *service.Config) { config.Audit.Log = true })
		Expect(world.Call(ctx, world.NewClient().Connect(ctx).Access).StatusCode).To(Equal(200))
		for _, message := range []string{"request", "call"} {
			var found []map[string]any
			for _, line := range jsonLines(world.Log.String()) {
				if line["msg"] == message {
					found = append(found, line)
				}
			}
			Expect(found).NotTo(BeEmpty())
			Expect(found).To(HaveEach(And(HaveKeyWithValue("duration_ms", BeAssignableToTypeOf(1.5)),
				Not(HaveKey("duration")))))
		}
	})
})

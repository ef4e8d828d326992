package features_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

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

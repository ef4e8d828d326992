package features_test

import (
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A mistake in the rules for tools, prompts and resources",
	Label("gateway", "configuration", "U28"), func() {
		BeforeEach(func() { workingFolder() })

		DescribeTable("is reported at the start with the line, the number of the rule and the remedy:",
			func(ctx SpecContext, setting, rule, remedy string) {
				write("pasteport.yaml", "upstream:\n- http://127.0.0.1:9000/mcp\n"+setting+":\n- deny x*\n- '"+rule+
					"'\n- allow *\n")
				dir := filepath.Join(GinkgoT().TempDir(), "data")
				ran := Run(ctx, "gateway", "--dev", "--addr=127.0.0.1:0", "--data="+dir)
				Expect(ran.Code).To(Equal(1))
				Expect(ran.Err).To(ContainSubstring(setting + " (from pasteport.yaml:3): " + remedy))
				Expect(dir).NotTo(BeADirectory())
			},
			Entry("another word", "tools", "forbid y", "number 2: it does not begin with allow or deny"),
			Entry("a pattern that does not end", "prompts", "deny [y", `number 2: "[y" is not a pattern`),
			Entry("an unknown scope", "tools", "deny y for scope:admin",
				`number 2: "admin" is not a scope of this server: add it to scopes`),
			Entry("a role, although the verifier is the upstream", "tools", "deny y for role:admin",
				`number 2: "role:admin" is a role, but the verifier names no roles`),
			Entry("a rule before one without effect", "tools", "allow *", "number 3: it has no effect"),
		)
	})

package features_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Configuring secrets", Label("configuration"), func() {
	const secret = "demo_known-to-few"
	BeforeEach(func() { workingFolder() })

	DescribeTable("never shows a secret from", func(ctx SpecContext, from string, prepare func() []string) {
		args := append(prepare(), "--dev")
		ran := Run(ctx, append([]string{"config"}, args...)...)
		Expect(ran.Settings()).To(HaveKeyWithValue("demo-token", "[hidden]"))
		Expect(ran.comment("demo-token")).To(Equal(from))
		wrong := Run(ctx, append([]string{"config", "--auth-code-ttl=1s"}, args...)...)
		Expect(wrong.Code).To(Equal(1))
		Expect(ran.Out + ran.Err + wrong.Out + wrong.Err).NotTo(ContainSubstring("known-to-few"))
	},
		Entry("a flag", "flag --demo-token", func() []string { return []string{"--demo-token", secret} }),
		Entry("the environment", "environment PASTEPORT_DEMO_TOKEN", func() []string {
			GinkgoT().Setenv("PASTEPORT_DEMO_TOKEN", secret)
			return nil
		}),
		Entry("the file", "file pasteport.yaml:1", func() []string {
			write("pasteport.yaml", "demo-token: "+secret)
			return nil
		}),
		Entry("a separate file", "flag --demo-token", func() []string {
			return []string{"--demo-token", "file:" + write("token", secret+"\n")}
		}),
	)

	DescribeTable("hides the query of a verifier's URL", func(ctx SpecContext, name string, beside ...string) {
		ran := Run(ctx, append(beside, "config", "--dev", "--"+name+"=https://cms.example.com/x?key="+secret)...)
		Expect(ran.Settings()).To(HaveKeyWithValue(name, "https://cms.example.com/x?[hidden]"))
		Expect(ran.Out).NotTo(ContainSubstring(secret))
		write("again.yaml", ran.Out)
		Expect(Run(ctx, "config", "--config=again.yaml").Err).
			To(MatchRegexp(name + ` \(from again\.yaml:\d+\) has \[hidden\], which stands for a hidden secret`))
	},
		Entry(nil, "verify-url", "--verifier=http"),
		Entry(nil, "introspection-url", "--verifier=introspection", "--introspection-client-id=me",
			"--introspection-client-secret=it"),
	)

	DescribeTable("does not print the password in a URL", func(ctx SpecContext, setting, said string) {
		ran := Run(ctx, "config", "--acme-domains=cms.example.com", setting)
		Expect(ran.Code).To(Equal(1))
		Expect(ran.Err).To(And(ContainSubstring(said), Not(ContainSubstring("known-to"))))
	},
		Entry(nil, "--issuer=https://me:known-to-few@cms.example.com", `"https://…@cms.example.com" has a user`),
		Entry("that is malformed", "--issuer=https://me:known-to/few@known-to-few@cms.example.com/",
			`"https://…@cms.example.com/" is not an absolute URL`),
		Entry("of a certificate authority", "--acme-directory=http://me:known-to-few@cms.example.com",
			"--acme-directory is not https"),
	)

	It("prefers the environment to a secret's file", func(ctx SpecContext) {
		write("token", secret+"\r\n")
		write("pasteport.yaml", "demo-token: file:token\n")
		GinkgoT().Setenv("PASTEPORT_DEMO_TOKEN", "another")
		Expect(Run(ctx, "config", "--dev").comment("demo-token")).To(Equal("environment PASTEPORT_DEMO_TOKEN"))
	})

	DescribeTable("does not print a misplaced secret", func(ctx SpecContext, code int, said string, line ...string) {
		write("pasteport.yaml", "demo-token: *known-to-few\n")
		ran := Run(ctx, line...)
		Expect(ran.Code).To(Equal(code))
		Expect(ran.Err).To(And(ContainSubstring(said), Not(ContainSubstring("known-to-few"))))
	},
		Entry("after an asterisk", 1, "pasteport.yaml is not YAML: it has an alias", "serve"),
		Entry("after one dash", 2, "flags begin with two dashes", "serve", "-demo-token=known-to-few"),
		Entry("after a space", 2, "unexpected argument", "serve", "--demo-token", "=", "known-to-few"),
		Entry("in an unknown flag", 2, "unknown flag: --token", "serve", "--token=known-to-few"),
		Entry("as a flag of hash-token", 2, "type it when asked", "hash-token", "--known-to-few"),
	)

	It("does not read a secret file that the command does not use", func(ctx SpecContext) {
		write("pasteport.yaml", "demo-token: file:missing\ndata: site\n")
		Expect(Run(ctx, "connections").Err).NotTo(ContainSubstring("missing"))
		Expect(Run(ctx, "demo", "--once").Err).To(ContainSubstring("demo-token (from pasteport.yaml:1) cannot be read"))
	})

	DescribeTable("refuses", func(ctx SpecContext, file, complaint string) {
		write("empty", "\n")
		write("pasteport.yaml", file)
		ran := Run(ctx, "config", "--dev")
		Expect(ran.Code).To(Equal(1))
		Expect(ran.Err).To(And(ContainSubstring(complaint), Not(ContainSubstring("known-to-few"))))
	},
		Entry("a missing file", "demo-token: file:missing\n",
			"demo-token (from pasteport.yaml:1) cannot be read: stat missing"),
		Entry("an empty file", "demo-token: file:empty\n",
			"demo-token (from pasteport.yaml:1) names an empty file"),
		Entry("[hidden] in place of a secret", "demo-token: '[hidden]'\n",
			"demo-token (from pasteport.yaml:1) has [hidden], which stands for a hidden secret"),
		Entry("a list without printing it", "demo-token: [known-to-few]\n",
			"demo-token (from pasteport.yaml:1) is [hidden]: write a text"),
	)
})

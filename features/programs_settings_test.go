package features_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A program in the settings", Label("gateway"), func() {
	DescribeTable("is refused, with the remedy, when",
		Label("U23", "F9", "configuration"), func(ctx SpecContext, remedy string, args ...string) {
			workingFolder()
			ran := Run(ctx, append([]string{"gateway", "--dev", "--addr=127.0.0.1:0", "--verifier=http",
				"--verify-url=https://cms.example/"}, args...)...)
			Expect(ran.Code).To(Equal(1))
			Expect(ran.Err).To(ContainSubstring(remedy))
			Expect(ran.Err).NotTo(ContainSubstring("s3cret"))
		},
		Entry("it has no command", "--upstream: it has no command", "--upstream=stdio: A=b"),
		Entry("a quote has no end", "--upstream: a quote in the command has no end", "--upstream=stdio: sh 's3cret"),
		Entry("a variable is set twice", "--upstream: it sets the variable A twice",
			"--upstream=stdio: A=s3cret A=s3cret sh"),
		Entry("the command does not exist", `--upstream: the command "no-such-program" cannot be run`,
			"--upstream=stdio: K={token} no-such-program"),
		Entry("the program gets no key", "no variable has {token}", "--upstream=stdio: sh"),
		Entry("the program gets a key that is none",
			"the environment has {token} or another field, but the credential is", "--upstream=stdio: K={token} sh",
			"--credential=none"),
		Entry("an argument has the key", "all users of this computer can read arguments",
			"--upstream=stdio: K={token} sh --key={token}"),
		Entry("a template is wrong", "the variable K: it has an unknown field user",
			"--upstream=stdio: K={token}s3cret{user} sh"),
		Entry("the program would verify keys", `cannot tell whether the key is valid: choose verifier "http"`,
			"--upstream=stdio: K={token} sh", "--verifier=upstream"),
		Entry("keys of several upstreams cannot be told apart", "run one gateway per upstream",
			"--upstream=stdio: K={token} sh", "--upstream=/files = http://127.0.0.1:9000/mcp"),
		Entry("static has no secret", `credential "static" needs it`, "--upstream=stdio: K={token} sh",
			"--credential=static"),
		Entry("a setting of HTTP has no effect", "--present is set, but has no effect on a program",
			"--upstream=stdio: K={token} sh", "--present=X-Key: {token}"),
		Entry("a limit is too low", `stdio-memory is "1KiB": write a size such as 4MiB, 32MiB or more`,
			"--upstream=stdio: K={token} sh", "--stdio-memory=1KiB"),
		Entry("no process is allowed", "write a whole number, 1 or more", "--upstream=stdio: K={token} sh",
			"--stdio-max-processes=0"),
	)

	It("is written with quotes and an environment, without a shell",
		Label("U23", "configuration"), func(ctx SpecContext) {
			workingFolder()
			const line = `stdio: A='b c' K={token} sh -c 'echo "it'"'"'s" $HOME' ''`
			ran := Run(ctx, "config", "--dev", "--verifier=http", "--verify-url=https://cms.example/",
				"--upstream="+`"`+strings.ReplaceAll(line, `"`, `""`)+`"`)
			Expect(ran.Code).To(BeZero(), ran.Err)
			Expect(ran.Out).To(ContainSubstring("stdio: A="))
		})

	It("is a mapping in the file, with a working folder", Label("U23", "configuration"), func(ctx SpecContext) {
		workingFolder()
		write("pasteport.yaml", "upstream:\n  command: sh\n  args: [-c, 'a, b']\n  dir: /opt\n  env: {K: '{token}', "+
			"B: b c}\nverifier: http\nverify-url: https://cms.example/\ndev: true\n")
		ran := Run(ctx, "config")
		Expect(ran.Code).To(BeZero(), ran.Err)
		printed := ran.Settings()["upstream"]
		Expect(printed).To(Equal([]any{map[string]any{
			"command": "sh",
			"args":    []any{"-c", "a, b"},
			"dir":     "/opt",
			"env":     map[string]any{"K": "{token}", "B": "b c"},
		}}))
		write("pasteport.yaml", ran.Out)
		Expect(Run(ctx, "config").Settings()["upstream"]).To(Equal(printed))
	})

	DescribeTable("is refused as a mapping",
		Label("U23", "F9", "configuration"), func(ctx SpecContext, mapping, remedy string) {
			workingFolder()
			write("pasteport.yaml", "upstream: "+mapping+"\nverifier: http\nverify-url: https://cms.example/\n")
			ran := Run(ctx, "gateway", "--dev", "--addr=127.0.0.1:0")
			Expect(ran.Code).To(Equal(1))
			Expect(ran.Err).To(And(ContainSubstring("upstream (from pasteport.yaml:1): "), ContainSubstring(remedy),
				Not(ContainSubstring("s3cret"))))
		},
		Entry("with an unknown key", "{command: sh, enviroment: {K: s3cret}}",
			`number 1 has the unknown key "enviroment": write path, url, command`),
		Entry("without a command", "{args: [s3cret]}", "the program has no command"),
		Entry("with a relative folder", "{command: sh, dir: s, env: {K: '{token}s3cret'}}",
			"the working folder \"s\" is relative"),
		Entry("with a URL too", "{command: sh, url: 'http://127.0.0.1:9000/mcp', env: {K: '{token}'}}",
			"it has a URL and a command: keep one"),
		Entry("with a field that does not exist", "{command: sh, env: {K: '{token}{usr}'}}",
			"the variable K: it has an unknown field usr"),
	)
})

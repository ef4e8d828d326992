package features_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.yaml.in/yaml/v3"
)

var _ = Describe("Configuring with mistakes", Label("configuration", "F9"), func() {
	var dir string
	BeforeEach(func() { dir = workingFolder() })

	It("prevents the start and reports every mistake at once, with the spelling that was used", func(ctx SpecContext) {
		write("pasteport.yaml",
			"issuer: http://cms.example.com\n\naccess-token-ttl: 30h\nacess-token-ttl: 1h\naccent: red\n")
		GinkgoT().Setenv("PASTEPORT_GRANT_TTL", "1m")
		GinkgoT().Setenv("PASTEPORT_DEMO_TOKN", "x")
		for _, command := range []string{"serve", "config"} {
			ran := Run(ctx, command, "--auth-code-ttl=1s", "--logo=missing.svg", "--addr=nowhere")
			Expect(ran.Code).To(Equal(1))
			Expect(ran.Out).To(BeEmpty())
			Expect(ran.Err).To(HavePrefix("pasteport: 9 settings are wrong:\n  "))
			Expect(strings.Split(strings.TrimSpace(ran.Err), "\n  ")[1:]).To(ConsistOf(
				`pasteport.yaml:4: unknown setting "acess-token-ttl": did you mean access-token-ttl?`,
				"unknown setting PASTEPORT_DEMO_TOKN: did you mean PASTEPORT_DEMO_TOKEN?",
				`issuer (from pasteport.yaml:1) "http://cms.example.com" is not https: clients refuse anything else `+
					`but on this computer; use the public https address`,
				`access-token-ttl (from pasteport.yaml:3) is "30h": write a duration such as 1h30m, from 1m to 24h`,
				`accent (from pasteport.yaml:5) is "red": write a colour such as '#0b5a4a', in quotes`,
				`PASTEPORT_GRANT_TTL is "1m": write a duration such as 1h30m, from 1h to 8760h`,
				`--auth-code-ttl is "1s": write a duration such as 1h30m, from 10s to 10m`,
				HavePrefix("--logo cannot be read: stat missing.svg"),
				HavePrefix(`--addr is "nowhere", which is not a valid address: write host:port`),
			))
		}
		Expect(filepath.Join(dir, "pasteport-data")).NotTo(BeADirectory())
	})

	It("compares nothing with an issuer that is missing", func(ctx SpecContext) {
		ran := Run(ctx, "config", "--dev", "--addr=0.0.0.0:8080", "--allowed-hosts=host.docker.internal",
			"--resource=https://mcp.example.com/mcp")
		Expect(ran.Code).To(Equal(1))
		Expect(ran.Err).To(HavePrefix("pasteport: the issuer, the public https URL of this service, is missing: "))
		Expect(Run(ctx, "config", "--auth-code-ttl=1s").Err).To(And(HavePrefix("pasteport: 2 settings are wrong:"),
			ContainSubstring(`--auth-code-ttl is "1s"`), ContainSubstring("the issuer, the public https URL")))
	})

	DescribeTable("refuses a file", func(ctx SpecContext, text string, complaints ...string) {
		write("pasteport.yaml", text)
		ran := Run(ctx, "config", "--issuer=https://cms.example.com")
		Expect(ran.Code).To(Equal(1), ran.Out)
		Expect(ran.Out).To(BeEmpty())
		for _, complaint := range complaints {
			Expect(ran.Err).To(ContainSubstring(complaint))
		}
	},
		Entry("with a tab", "issuer: https://cms.example.com\n\tdev: true\n", "pasteport.yaml is not YAML: line 2",
			"indented with spaces"),
		Entry("with a setting twice", "dev: true\naddr: 127.0.0.1:1\ndev: false\n",
			"pasteport.yaml:3: dev is already set in pasteport.yaml:1: keep one"),
		Entry("with an unknown setting", "sit-name: x\nzzzz: y\n",
			`pasteport.yaml:1: unknown setting "sit-name": did you mean site-name?`,
			`pasteport.yaml:2: unknown setting "zzzz": "pasteport config example --all" lists all settings`),
		Entry("with yes for true", "dev: yes\n", `dev (from pasteport.yaml:1) is "yes": write true or false`),
		Entry("with self-registration of clients that are not allowed",
			"self-registration: on\nallow-clients: [claude.ai]\n",
			"self-registration (from pasteport.yaml:1) is on, but allow-clients does not list "+
				"self-registered"),
		Entry("with clients that are allowed and cannot register",
			"allow-clients: [self-registered]\nself-registration: off\n",
			"lists self-registered, but self-registration is off"),
		Entry("with an audit log whose lines the log leaves out", "audit-log: on\nlog-level: warn\n",
			"log-level (from pasteport.yaml:2) is warn, but audit-log logs calls at level info"),
		Entry("with a number for a duration", "access-token-ttl: 3600\n", `is "3600": write a duration such as 1h30m`),
		Entry("with an unknown choice", "log-format: xml\n", `is "xml": write text or json`),
		Entry("with a setting without a value", "accent: #0b5a4a\n",
			"accent (from pasteport.yaml:1) has no value: write a colour such as '#0b5a4a', in quotes"),
		Entry("with a list for a text", "issuer: [https://cms.example.com]\nsite-name: [a]\n",
			"site-name (from pasteport.yaml:2) is a list: write a text"),
		Entry("with URLs for host names", "allow-clients: [https://claude.ai]\n",
			`is "https://claude.ai": write a list of host names without scheme`),
		Entry("with an invalid network", "unlimited-networks: [192.0.2]\n",
			`is "192.0.2": write a list of networks such as 10.0.0.0/8`),
		Entry("with a * without quotes", "upstream: http://127.0.0.1:9000/mcp\ntools:\n- *\n",
			"pasteport.yaml is not YAML: ", "quotes if it begins with *"),
		Entry("with two documents", "dev: true\n---\ndev: false\n",
			`pasteport.yaml has more after a "---": keep one document`),
		Entry("that is a list", "- dev\n",
			"pasteport.yaml:1: this is not a setting: write one \"name: value\" on each line"),
		Entry("with aliases that expand exponentially",
			"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nallow-clients: [*b,*b,*b,*b]\n",
			"allow-clients (from pasteport.yaml:3) is an alias"),
		Entry("that is huge", strings.Repeat("#", 1<<20+1), "pasteport.yaml has more than 1048576 bytes", "--config"),
	)

	It("accepts a file of any form that YAML has", func(ctx SpecContext) {
		for _, text := range []string{"", "# nothing yet\n", "\ufeffdev: false\r\naddr: 127.0.0.1:9000\r\n",
			"allow-clients: []\n", "trusted-proxies: 127.0.0.1\n", "site-name: ''\n", "recheck-every: 0\n"} {
			write("pasteport.yaml", text)
			Expect(Run(ctx, "config", "--issuer=https://cms.example.com").Settings()).
				To(HaveKeyWithValue("dev", false), text)
		}
	})

	DescribeTable("refuses a file that it cannot read", func(ctx SpecContext, name, complaint string) {
		Expect(os.Mkdir("folder", 0o700)).To(Succeed())
		Expect(os.Symlink("loop", "loop")).To(Succeed())
		ran := Run(ctx, "serve", "--config", name)
		Expect(ran.Code).To(Equal(1))
		Expect(ran.Err).To(And(ContainSubstring("reading the settings: "), ContainSubstring(complaint),
			ContainSubstring("name a readable file with --config")))
	},
		Entry("because it does not exist", "missing.yaml", "missing.yaml: no such file"),
		Entry("because it is a folder", "folder", "folder is a directory"),
		Entry("because it is a symlink loop", "loop", "stat loop: too many"),
	)

	DescribeTable("is reported by config before serve fails", func(ctx SpecContext, complaint string, flags ...string) {
		files := NewCertificateFiles(1, time.Hour)
		Expect(os.Rename(files.Cert, "cert.pem")).To(Succeed())
		Expect(os.Rename(files.Key, "key.pem")).To(Succeed())
		write("empty", "")
		write("odd", "ada:s3cret\n")
		write("spaced", "a s3cret\n")
		for _, command := range []string{"config", "serve"} {
			ran := Run(ctx, append(flags, command, "--issuer=https://cms.example.com", "--auth-code-ttl=1s")...)
			Expect(ran.Code).To(Equal(1))
			Expect(ran.Err).
				To(And(HavePrefix("pasteport: 2 settings are wrong:"), ContainSubstring(`--auth-code-ttl is "1s"`),
					MatchRegexp(complaint)))
			Expect(ran.Err).NotTo(ContainSubstring("s3cret"))
		}
	},
		Entry("when the admin address is invalid",
			`--admin-addr is "nowhere", which is not a valid address: write host:port, for example 127\.0\.0\.1:8081`,
			"--admin-addr=nowhere"),
		Entry("when the token file has a mistake", `--token-file: reading the token file odd: line 1`,
			"--verifier=file", "--token-file=odd"),
		Entry("when the certificate does not exist", `--tls-cert cannot be read: stat missing`, "--tls-cert=missing",
			"--tls-key=key.pem"),
		Entry("when the key's file has a certificate", `--tls-cert and tls-key: .*PEM`, "--tls-cert=cert.pem",
			"--tls-key=cert.pem"),
		Entry("when the demo token is invalid", `--demo-token is invalid: .* printable ASCII`, "--demo-token=a s3cret"),
	)

	DescribeTable("refuses settings without effect", func(ctx SpecContext, complaint string, flags ...string) {
		write("pasteport.yaml", "issuer: https://cms.example.com\n")
		tokens := NewTokenFile(ctx, []string{editorToken})
		for i := range flags {
			flags[i] = strings.Replace(flags[i], "=tokens", "="+string(tokens), 1)
		}
		ran := Run(ctx, append([]string{"config"}, flags...)...)
		Expect(ran.Code).To(Equal(1))
		Expect(ran.Err).To(Equal("pasteport: " + complaint + "\n"))
	},
		Entry(nil, `--introspection-scopes is set, but verifier is "file": leave it out, or choose "introspection"`,
			"--verifier=file", "--token-file=tokens", "--introspection-scopes"),
		Entry(nil, `--demo-token is set, but verifier is "file": leave it out, or choose "site"`, "--verifier=file",
			"--token-file=tokens", "--demo-token=x"),
		Entry(nil, "--acme-email is set, but acme-domains is empty: leave it out, or name the domains",
			"--acme-email=ada@example.com"),
		Entry(nil, "--verify-url: http is for this computer and private networks only: use https", "--verifier=http",
			"--verify-url=http://8.8.8.8/"),
	)

	It("reads regular files only, up to a size limit", func(ctx SpecContext) {
		if exec.CommandContext(ctx, "mkfifo", "pipe").Run() != nil {
			Skip("there are no named pipes on " + runtime.GOOS)
		}
		for flag, file := range map[string]string{
			"config":          "pipe",
			"logo":            "pipe",
			"demo-token":      "file:pipe",
			"dev=true --logo": "/dev/zero",
		} {
			ran := Run(ctx, append([]string{"config", "--issuer=https://cms.example.com"},
				strings.Fields("--"+flag+" "+file)...)...)
			Expect(ran.Code).To(Equal(1), flag)
			Expect(ran.Err).To(ContainSubstring(strings.TrimPrefix(file, "file:")+" is not a regular file"), flag)
		}
		write("logo.svg", "<svg>"+strings.Repeat(" ", 12<<10))
		Expect(Run(ctx, "config", "--dev", "--logo=logo.svg").Err).
			To(ContainSubstring("--logo cannot be read: logo.svg has more than 12288 bytes"))
	})

	DescribeTable("reports no other mistakes for a file that it cannot parse", func(ctx SpecContext, text string) {
		write("pasteport.yaml", text)
		ran := Run(ctx, "serve", "--config=pasteport.yaml")
		Expect(ran.Err).NotTo(Or(ContainSubstring("settings are wrong"), ContainSubstring("https address")))
		Expect(os.Remove("pasteport.yaml")).To(Succeed())
		Expect(Run(ctx, "serve", "--config=pasteport.yaml").Err).NotTo(ContainSubstring("https address"))
	},
		Entry("because it is not YAML", "issuer: https://cms.example.com\n\tdev: true\n"),
		Entry("because it is a list", "- issuer: https://cms.example.com\n"),
	)

	DescribeTable("suggests a flag of the command", func(ctx SpecContext, line, meant string) {
		ran := Run(ctx, strings.Fields(line)...)
		Expect(ran.Code).To(Equal(2))
		Expect(ran.Err).To(HavePrefix("pasteport: unknown flag: " + strings.Fields(line)[1] + meant + "\n"))
	},
		Entry(nil, "serve --acces-token-ttl", ": did you mean --access-token-ttl?"),
		Entry("also for --config", "serve --confg", ": did you mean --config?"),
		Entry("also for flags that are not settings", "connections --jso", ": did you mean --json?"),
		Entry("but not the same name", "connections --issuer", ""),
		Entry("but not a flag of another command", "connections --isuer", ""),
		Entry("but not for a command without settings", "version --isuer", ""),
	)

	It("ignores unrelated variables with its prefix", func(ctx SpecContext) {
		GinkgoT().Setenv("PASTEPORT_SERVICE_HOST", "10.0.0.1")
		GinkgoT().Setenv("PASTEPORT_PORT", "tcp://10.0.0.1:80")
		Expect(Run(ctx, "config", "--dev").Settings()).To(HaveKey("issuer"))
	})
})

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
		Entry("an empty file", "demo-token: file:empty\n", "demo-token (from pasteport.yaml:1) names an empty file"),
		Entry("[hidden] in place of a secret", "demo-token: '[hidden]'\n",
			"demo-token (from pasteport.yaml:1) has [hidden], which stands for a hidden secret"),
		Entry("a list without printing it", "demo-token: [known-to-few]\n",
			"demo-token (from pasteport.yaml:1) is [hidden]: write a text"),
	)
})

var _ = Describe("Describing the settings to editors", Label("configuration"), func() {
	var schema *jsonschema.Resolved
	validate := func(text string) error {
		GinkgoHelper()
		var file any
		Expect(yaml.Unmarshal([]byte(text), &file)).To(Succeed(), text)
		return schema.Validate(file)
	}
	BeforeEach(func(ctx SpecContext) {
		workingFolder()
		var described jsonschema.Schema
		Expect(json.Unmarshal([]byte(Run(ctx, "config", "schema").Out), &described)).To(Succeed())
		Expect(described.Schema).To(Equal("https://json-schema.org/draft/2020-12/schema"))
		for name, property := range described.Properties {
			Expect(property.Description).NotTo(BeEmpty(), name)
		}
		schema = must(described.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true}))
	})

	It("has an example for a gateway on one page, which is valid as it is", func(ctx SpecContext) {
		example := Run(ctx, "config", "example")
		Expect(strings.Count(example.Out, "\n")).To(BeNumerically("<=", 60), example.Out)
		write("pasteport.yaml", example.Out)
		shown := Run(ctx, "config", "--set-only")
		Expect(shown.Settings()).To(HaveLen(5))
		Expect(shown.Settings()).To(HaveKeyWithValue("upstream", ConsistOf("http://127.0.0.1:9000/mcp")))
		Expect(shown.Out).To(ContainSubstring("# file pasteport.yaml:"))
		Expect(Run(ctx, "config").Settings()).To(HaveKey("auth-code-ttl"))
	})

	It("accepts every line of the example file, and the output of config", func(ctx SpecContext) {
		Expect(validate(Run(ctx, "config", "example", "--all").Out)).To(Succeed())
		for _, setting := range examples(ctx) {
			Expect(validate(setting.line)).To(Succeed(), setting.line)
		}
		Expect(validate(Run(ctx, "config", "--dev", "--recheck-every=90m", "--client-id-ports=8443").Out)).To(Succeed())
	})

	It("accepts and refuses what the program does", func() {
		for _, text := range []string{"recheck-every: 0", "trusted-proxies: 127.0.0.1", "access-token-ttl: 1h30m",
			"client-id-ports: [8443]"} {
			Expect(validate(text)).To(Succeed(), text)
		}
		for _, text := range []string{"sit-name: x", "dev: 'yes'", "site-name: 2048", "access-token-ttl: 3600",
			"access-token-ttl: '3600'", "log-format: xml", "accent: red", "site-name:"} {
			Expect(validate(text)).NotTo(Succeed(), text)
		}
	})
})

var _ = Describe("Shell completion and help", Label("configuration"), func() {
	BeforeEach(func() { workingFolder() })

	const folders, filesToo, nothingElse = ":16", ":0", ":4" // directives to the shell

	DescribeTable("completes", func(ctx SpecContext, line, besides string, words ...string) {
		ran := Run(ctx, append([]string{"__complete"}, strings.Split(line, " ")...)...)
		for _, word := range words {
			Expect(ran.Out).To(ContainSubstring(word))
		}
		Expect(ran.Out).To(HaveSuffix(besides + "\n"))
	},
		Entry("commands", "", nothingElse, "serve\t", "demo\t", "config\t", "version\t"),
		Entry("settings with their help text", "serve --access", nothingElse,
			"--access-token-ttl\tlifetime of an access token"),
		Entry("choices", "serve --log-format ", nothingElse, "text\njson\n"),
		Entry("folders", "serve --data ", folders),
		Entry("files", "serve --config ", filesToo),
		Entry("no files for a setting that is not a file", "serve --issuer ", nothingElse),
	)
})

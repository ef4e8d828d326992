package features_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.yaml.in/yaml/v3"
)

// Settings parses the output of "pasteport config".
func (r Ran) Settings() map[string]any {
	GinkgoHelper()
	Expect(r.Err).To(BeEmpty())
	settings := map[string]any{}
	Expect(yaml.Unmarshal([]byte(r.Out), settings)).To(Succeed(), r.Out)
	return settings
}

// workingFolder changes to an empty folder and unsets the program's variables of the tester's
// environment.
func workingFolder() string {
	for _, line := range os.Environ() {
		if variable, _, _ := strings.Cut(line, "="); strings.HasPrefix(variable, "PASTEPORT_") {
			GinkgoT().Setenv(variable, "")
		}
	}
	dir := GinkgoT().TempDir()
	GinkgoT().Chdir(dir)
	return dir
}

func write(name, text string) string {
	GinkgoHelper()
	Expect(os.WriteFile(name, []byte(text), 0o600)).To(Succeed())
	return name
}

func variableOf(name string) string {
	return "PASTEPORT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// given is a value of the example file in the three spellings.
type given struct{ name, line, variable string }

func (g given) flag() string { return "--" + g.name + "=" + g.variable }

// examples returns the settings of the example file.
func examples(ctx context.Context) (found []given) {
	GinkgoHelper()
	for _, line := range strings.Split(Run(ctx, "config", "example", "--all").Out, "\n") {
		name, _, isSetting := strings.Cut(strings.TrimPrefix(line, "#"), ": ")
		if strings.HasPrefix(line, "# ") || !isSetting {
			continue
		}
		line = strings.TrimPrefix(line, "#")
		value := map[string]any{}
		Expect(yaml.Unmarshal([]byte(line), value)).To(Succeed(), line)
		found = append(found, given{name, line, inOneLine(value[name])})
	}
	return found
}

// inOneLine returns a value as flags and variables spell it.
func inOneLine(value any) string {
	items, isList := value.([]any)
	if !isList {
		return strings.Trim(strings.TrimSpace(string(must(yaml.Marshal(value)))), `'"`)
	}
	if _, isMapping := items[0].(map[string]any); isMapping {
		return string(must(json.Marshal(items)))
	}
	var fields []string
	for _, item := range items {
		fields = append(fields, item.(string))
	}
	var text strings.Builder
	w := csv.NewWriter(&text)
	Expect(w.Write(fields)).To(Succeed())
	w.Flush()
	return strings.TrimSpace(text.String())
}

// comment returns the source that "pasteport config" prints for a setting.
func (r Ran) comment(name string) string {
	found := regexp.MustCompile(`(?m)^` + name + `:.* # (.*)$`).FindStringSubmatch(r.Out)
	if found == nil {
		return r.Out + r.Err
	}
	return found[1]
}

// companions are the settings that others require, by name prefix. The longest prefix wins.
var companions = map[string][]string{
	"":               {"--issuer=https://cms.example.com"},
	"allowed-hosts":  {"--dev", "--issuer=http://127.0.0.1:8080"},
	"default-scopes": {"--scopes=articles:read"},
	"tls-":           {"--tls-cert=/etc/pasteport/cert.pem", "--tls-key=/etc/pasteport/key.pem"},
	"acme-email":     {"--acme-domains=cms.example.com"},
	"audit-":         {"--audit-file=/var/log/pasteport/audit.jsonl"},
	"server-secret":  {"--database=postgres://pasteport@db.internal/pasteport"},
	"token-file":     {"--verifier=file"},
	"tools":          {"--upstream=http://127.0.0.1:9000/mcp"},
	"prompts": {"--upstream=http://127.0.0.1:9000/mcp", "--verifier=file",
		"--token-file=/etc/pasteport/tokens"},
	"resources":        {"--upstream=http://127.0.0.1:9000/mcp"},
	"resource-servers": {"--verifier=http", "--verify-url=https://cms.example.com/token"},
	"verifier":         {"--token-file=/etc/pasteport/tokens"},
	"upstream-":        {"--upstream=http://127.0.0.1:9000/mcp"},
	"present":          {"--upstream=http://127.0.0.1:9000/mcp"},
	"fields":           {"--upstream=http://127.0.0.1:9000/mcp", "--present=Authorization: Basic {base64(user:token)}"},
	"upstream-cert":    {"--upstream-key=/etc/pasteport/key.pem"},
	"upstream-key":     {"--upstream-cert=/etc/pasteport/cert.pem"},
	"upstream-secret":  {"--credential=static", "--signing-secret=another-long-random-text-of-32-bytes"},
	"signing-secret": {"--upstream=http://127.0.0.1:9000/mcp", "--credential=static",
		"--upstream-secret=a-long-random-text"},
	"tool-scopes": {"--upstream=http://127.0.0.1:9000/mcp", "--scopes=articles:write"},
	"forward-":    {"--upstream=http://127.0.0.1:9000/mcp"},
	"verify-":     {"--verifier=http", "--verify-url=https://cms.example.com/token"},
	"introspection-": {"--verifier=introspection", "--introspection-url=https://login.example.com",
		"--introspection-client-id=me", "--introspection-client-secret=it"},
}

// beside returns the companions of a setting, without the setting itself.
func beside(name string) (args []string) {
	for _, beginning := range slices.Sorted(maps.Keys(companions)) {
		if strings.HasPrefix(name, beginning) {
			args = append(args, companions[beginning]...)
		}
	}
	return slices.DeleteFunc(args, func(flag string) bool {
		set, _, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		return set == name
	})
}

var _ = Describe("Configuring the command line", Label("configuration"), func() {
	var dir string
	BeforeEach(func() { dir = workingFolder() })

	It("reads every setting from a flag, else from the environment, else from the file", func(ctx SpecContext) {
		write("logo.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>")
		certificate, tokens := NewCertificateFiles(1, time.Hour), NewTokenFile(ctx, []string{editorToken})
		at := strings.NewReplacer("/etc/pasteport/cert.pem", certificate.Cert, "/etc/pasteport/key.pem",
			certificate.Key, "/etc/pasteport/tokens", string(tokens), "/etc/pasteport/clients", GinkgoT().TempDir(),
			"/etc/pasteport/well-known", GinkgoT().TempDir(),
			"/etc/pasteport/upstream-ca.pem", certificate.Cert, "/etc/pasteport/upstream-cert.pem", certificate.Cert,
			"/etc/pasteport/upstream-key.pem", certificate.Key)
		all := examples(ctx)
		Expect(len(all)).To(BeNumerically(">", 30))
		for _, setting := range all {
			if secret, isFile := strings.CutPrefix(setting.variable, "file:/run/secrets/"); isFile {
				contents := map[string]string{
					"database":       "postgres://db.internal/pasteport",
					"metadata-proxy": "http://proxy.internal:3128",
					"upstream-proxy": "http://proxy.internal:3128",
				}
				if contents[secret] == "" {
					contents[secret] = "of-a-file-with-thirty-two-bytes-or-more"
				}
				file := "file:" + write(secret+".txt", contents[secret]+"\n")
				setting.line, setting.variable = setting.name+": "+file, file
			}
			setting.line, setting.variable = at.Replace(setting.line), at.Replace(setting.variable)
			args := append([]string{"config"}, beside(setting.name)...)
			for i := range args {
				args[i] = at.Replace(args[i])
			}
			write("pasteport.yaml", setting.line+"\n")
			inFile := Run(ctx, args...)
			Expect(inFile.comment(setting.name)).To(Equal("file pasteport.yaml:1"), setting.name)
			Expect(os.Setenv(variableOf(setting.name), setting.variable)).To(Succeed())
			inEnvironment := Run(ctx, args...)
			Expect(inEnvironment.comment(setting.name)).To(Equal("environment "+variableOf(setting.name)), setting.name)
			byFlag := Run(ctx, append(args, setting.flag())...)
			Expect(byFlag.comment(setting.name)).To(Equal("flag --"+setting.name), setting.name)
			Expect(os.Unsetenv(variableOf(setting.name))).To(Succeed())
			for _, ran := range []Ran{inEnvironment, byFlag} {
				Expect(ran.Settings()[setting.name]).To(Equal(inFile.Settings()[setting.name]), setting.name)
			}
		}
	})

	DescribeTable("applies the precedence",
		func(ctx SpecContext, name, inFile, variable string, flags []string, byFile, byVariable, byFlag any) {
			args := []string{"config", "--issuer=https://cms.example.com"}
			write("pasteport.yaml", name+": "+inFile+"\n")
			Expect(Run(ctx, args...).Settings()).To(HaveKeyWithValue(name, byFile))
			GinkgoT().Setenv(variableOf(name), variable)
			Expect(Run(ctx, args...).Settings()).To(HaveKeyWithValue(name, byVariable))
			Expect(Run(ctx, append(args, flags...)...).Settings()).To(HaveKeyWithValue(name, byFlag))
		},
		Entry("of a duration", "access-token-ttl", "2h", "3h30m", []string{"--access-token-ttl", "45s1m"}, "2h",
			"3h30m", "1m45s"),
		Entry("of a switch", "self-registration", "true", "false", []string{"--self-registration"}, true, false, true),
		Entry("of a choice", "log-level", "debug", "warn", []string{"--log-level=error"}, "debug", "warn", "error"),
		Entry("of a text", "site-name", `"2048"`, "two", []string{"--site-name", "drei"}, "2048", "two", "drei"),
		Entry("of a list", "allow-clients", "[a.example, B.example]", "c.example, d.example",
			[]string{"--allow-clients=e.example,f.example", "--allow-clients", "g.example"},
			[]any{"a.example", "B.example"}, []any{"c.example", "d.example"},
			[]any{"e.example", "f.example", "g.example"}),
		Entry("of scopes", "scopes", `["a b = Read, and write", b]`, `"b = Read, a little"`, []string{"--scopes", "c"},
			[]any{"a b = Read, and write", "b"}, []any{"b = Read, a little"}, []any{"c"}),
	)

	DescribeTable("verifies tokens in use where the site can take away roles, unless it is switched off",
		Label("J8"), func(ctx SpecContext, every string, arguments ...string) {
			GinkgoT().Chdir(GinkgoT().TempDir())
			Expect(os.WriteFile("tokens", nil, 0o600)).To(Succeed())
			Expect(Run(ctx, append([]string{"config", "--issuer=https://cms.example"}, arguments...)...).Settings()).
				To(HaveKeyWithValue("recheck-every", every))
		},
		Entry("with a file", "5m", "--verifier=file", "--token-file=tokens"),
		Entry("with a URL", "5m", "--verifier=http", "--verify-url=https://cms.example/token"),
		Entry("with introspection", "5m", "--verifier=introspection", "--introspection-url=https://cms.example/i",
			"--introspection-client-id=me", "--introspection-client-secret=secret"),
		Entry("with another interval", "1h", "--verifier=http", "--verify-url=https://cms.example/token",
			"--recheck-every=1h"),
		Entry("switched off", "0s", "--verifier=http", "--verify-url=https://cms.example/token", "--recheck-every=0"),
		Entry("with the upstream", "0s", "--upstream=https://mcp.example/mcp"),
		Entry("in the demo", "0s"),
	)

	It("accepts every line of a list", func(ctx SpecContext) {
		all := HaveKeyWithValue("unlimited-networks", []any{"10.0.0.0/8", "172.16.0.0/12", "192.0.2.0/24"})
		GinkgoT().Setenv("PASTEPORT_UNLIMITED_NETWORKS", "10.0.0.0/8\n172.16.0.0/12,192.0.2.0/24\n")
		Expect(Run(ctx, "config", "--dev").Settings()).To(all)
		GinkgoT().Setenv("PASTEPORT_UNLIMITED_NETWORKS", "")
		Expect(Run(ctx, "config", "--dev", "--unlimited-networks=10.0.0.0/8\n172.16.0.0/12",
			"--unlimited-networks=192.0.2.0/24").Settings()).To(all)
	})

	It("finds the file named by a flag or a variable, or the one in the working folder", func(ctx SpecContext) {
		for _, name := range []string{"pasteport.yaml", "variable.yaml", "flag.yaml"} {
			write(name, "issuer: https://cms.example.com\nsite-name: "+name+"\n")
		}
		Expect(Run(ctx, "config").Settings()).To(HaveKeyWithValue("site-name", "pasteport.yaml"))
		GinkgoT().Setenv("PASTEPORT_CONFIG", filepath.Join(dir, "variable.yaml"))
		Expect(Run(ctx, "config").Settings()).To(HaveKeyWithValue("site-name", "variable.yaml"))
		Expect(Run(ctx, "config", "--config", "flag.yaml").Settings()).To(HaveKeyWithValue("site-name", "flag.yaml"))
	})

	It("ignores an empty variable", func(ctx SpecContext) {
		GinkgoT().Setenv("PASTEPORT_ACCESS_TOKEN_TTL", "")
		Expect(Run(ctx, "config", "--dev").comment("access-token-ttl")).To(Equal("default"))
	})

	It("turns off the grace window with refresh-grace: 0", Label("D27"), func(ctx SpecContext) {
		for _, off := range []string{"0", "0s"} {
			Expect(Run(ctx, "config", "--dev", "--refresh-grace="+off).Settings()).
				To(HaveKeyWithValue("refresh-grace", "0s"))
		}
		Expect(Run(ctx, "config", "--dev").Settings()).To(HaveKeyWithValue("refresh-grace", "5m"))
	})

	It("shows the default appearance of the pages", func(ctx SpecContext) {
		ran := Run(ctx, "config", "--issuer=https://cms.example.com:8443", "--upstream=http://127.0.0.1:9000/mcp")
		Expect(ran.Settings()).
			To(And(HaveKeyWithValue("site-name", "cms.example.com:8443"), HaveKeyWithValue("accent", "#0b5a4a")))
		Expect(ran.comment("allow-clients")).To(Equal("default: every client"))
	})

	It("names the demo site, under any issuer", func(ctx SpecContext) {
		ran := Run(ctx, "config", "--issuer=https://cms.example.com")
		Expect(ran.Settings()).
			To(And(HaveKeyWithValue("site-name", "Demo site"), HaveKeyWithValue("resource-name", "Demo site")))
	})

	It("does not print an address that is chosen at the start", func(ctx SpecContext) {
		ran := Run(ctx, "config", "--dev", "--addr=localhost:0")
		Expect(ran.Settings()).To(And(HaveKeyWithValue("issuer", ""), HaveKeyWithValue("resource", ""),
			HaveKeyWithValue("site-name", "Demo site")))
		Expect(ran.comment("issuer")).To(Equal("default: http:// followed by addr if dev is set"))
		write("again.yaml", ran.Out)
		Expect(Run(ctx, "config", "--config=again.yaml").Settings()).To(Equal(ran.Settings()))
	})

	It("derives settings from other settings", func(ctx SpecContext) {
		Expect(Run(ctx, "config", "--dev", "--addr=127.0.0.1:9000", "--scopes=read,write").Settings()).To(And(
			HaveKeyWithValue("issuer", "http://127.0.0.1:9000"),
			HaveKeyWithValue("resource", "http://127.0.0.1:9000/mcp"),
			HaveKeyWithValue("default-scopes", []any{"read"})))
	})

	It("prints a file that it can read", func(ctx SpecContext) {
		first := Run(ctx, "config", "--issuer=https://cms.example.com", "--accent=#0b5a4a", "--site-name=yes",
			"--scopes", `"a b = It's: ""all"", # and more",b`)
		write("again.yaml", first.Out)
		again := Run(ctx, "config", "--config", "again.yaml")
		Expect(again.Settings()).To(Equal(first.Settings()))
		Expect(again.comment("accent")).To(HavePrefix("file again.yaml:"))
	})

	It("is listed in docs/settings.md", func(ctx SpecContext) {
		page := must(os.ReadFile(settingsPage))
		const begin, end = "<!-- settings -->\n", "<!-- end of settings -->"
		before, rest, _ := strings.Cut(string(page), begin)
		table, after, ended := strings.Cut(rest, end)
		Expect(ended).To(BeTrue(), "the two comments around the table are missing")
		reference := Run(ctx, "config", "reference").Out
		if os.Getenv("UPDATE") != "" {
			table = reference
			write(settingsPage, before+begin+reference+end+after)
		}
		Expect(table).To(Equal(reference), "run this spec with UPDATE=1")
		for _, setting := range examples(ctx) {
			Expect(table).To(ContainSubstring("| `" + setting.name + "` |"))
		}
	})

	It("accepts the example of docs/settings.md", func(ctx SpecContext) {
		_, rest, _ := strings.Cut(string(must(os.ReadFile(settingsPage))), "```yaml\n")
		example, _, _ := strings.Cut(rest, "```")
		write("token", "of-the-editor\n")
		write("pasteport.yaml", strings.Replace(example, "/run/secrets/demo-token", "token", 1))
		Expect(Run(ctx, "config").Settings()).To(HaveKeyWithValue("demo-token", "[hidden]"))
	})
})

// settingsPage is resolved before a spec changes the working folder.
var settingsPage = func() string {
	path, err := filepath.Abs("../docs/settings.md")
	if err != nil {
		panic(err)
	}
	return path
}()

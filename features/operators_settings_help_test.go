package features_test

import (
	"encoding/json"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.yaml.in/yaml/v3"
)

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
		var err error
		schema, err = described.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
		Expect(err).NotTo(HaveOccurred())
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

package cli

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/bootstrap/settings"
)

func newConfig(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	table := config.Table()
	var setOnly bool
	command := &cobra.Command{
		Use:                        "config",
		Short:                      "Print and check the effective settings",
		Args:                       term.OnlyCommands,
		SuggestionsMinimumDistance: 2,
		Long: "Print every setting with its value and source: a flag, the environment, the file or the default. " +
			"Secrets are hidden. For MCP\n" +
			"servers elsewhere, it also prints the document that each has to publish.\n" +
			"The command reports all invalid settings and fails if a service would refuse them. It does not listen " +
			"and opens no database.",
		Example: "  pasteport config --config /etc/pasteport.yaml\n" +
			"  pasteport config example >pasteport.yaml\n" +
			"  pasteport config schema >pasteport.schema.json",
		RunE: func(*cobra.Command, []string) error {
			config.Resolve()
			return errors.Join(table.WriteEffective(out, setOnly), config.WriteMetadata(out))
		},
	}
	table.Flags(command)
	command.Flags().BoolVar(&setOnly, "set-only", false, "print only the settings that are set")
	command.PreRunE = func(*cobra.Command, []string) error {
		_, err := config.Load(table, io.Discard)
		return err
	}
	var all bool
	example := newConfigPart("example", "Print a file of settings to start a gateway with",
		func(t *settings.Table, out io.Writer) error {
			if all {
				return t.WriteExample(out, []string{"issuer"}, nil)
			}
			return t.WriteExample(out, []string{"issuer", "upstream", "data", "site-name", "trusted-proxies"},
				[]string{"present", "fields", "tools", "verifier", "token-file", "verify-url", "accept-host-tokens",
					"scopes", "allow-clients", "token-help", "database", "server-secret", "audit-file", "log-format"})
		}, out)
	example.Flags().BoolVar(&all, "all", false, "print every setting, only issuer without a comment mark")
	command.AddCommand(
		example,
		newConfigPart("schema", "Print the JSON schema of the file, for editors", (*settings.Table).WriteSchema, out),
		newConfigPart("reference", "Print a table of all settings in Markdown", (*settings.Table).WriteReference, out),
	)
	return command
}

func newConfigPart(name, short string, write func(*settings.Table, io.Writer) error, out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:               name,
		Short:             short,
		Args:              term.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return write(service.DefaultConfig().Table(), out) },
	}
}

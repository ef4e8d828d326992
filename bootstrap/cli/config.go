package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/bootstrap/settings"
)

func newConfig(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	table := config.Table()
	command := &cobra.Command{
		Use:                        "config",
		Short:                      "Print and check the effective settings",
		Args:                       term.OnlyCommands,
		SuggestionsMinimumDistance: 2,
		Long: "Print every setting with its value and source: a flag, the environment, the file or the default. " +
			"Secrets are hidden.\n" +
			"The command reports all invalid settings and fails if \"pasteport serve\" would refuse them. It does " +
			"not listen and opens no database.",
		Example: "  pasteport config --config /etc/pasteport.yaml\n" +
			"  pasteport config example >pasteport.yaml\n" +
			"  pasteport config schema >pasteport.schema.json",
		RunE: func(*cobra.Command, []string) error {
			config.Resolve()
			return table.WriteEffective(out)
		},
	}
	table.Flags(command)
	command.PreRunE = func(*cobra.Command, []string) error {
		_, err := config.Load(table, io.Discard)
		return err
	}
	command.AddCommand(
		newConfigPart("example", "Print a commented example file with all settings",
			(*settings.Table).WriteExample, out),
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

package settings

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const helpWidth = 110

type titledFlags struct {
	title string
	flags *pflag.FlagSet
}

// usageIn prints the flags by group, and at the end those that are not settings.
func usageIn(groups []titledFlags) func(*cobra.Command) error {
	return func(command *cobra.Command) error {
		var text strings.Builder
		fmt.Fprintf(&text, "Usage:\n  %s\n", command.UseLine())
		if command.HasAvailableSubCommands() {
			text.WriteString("\nCommands:\n")
			for _, below := range command.Commands() {
				fmt.Fprintf(&text, "  %-*s  %s\n", below.NamePadding(), below.Name(), below.Short)
			}
		}
		if command.HasExample() {
			fmt.Fprintf(&text, "\nExamples:\n%s\n", command.Example)
		}
		local := command.LocalFlags()
		settings := pflag.NewFlagSet("", pflag.ContinueOnError)
		for _, group := range groups {
			own := subset(group.flags, func(flag *pflag.Flag) bool { return local.Lookup(flag.Name) == flag })
			writeFlags(&text, group.title, own)
			settings.AddFlagSet(own)
		}
		writeFlags(&text, "Other", subset(local, func(flag *pflag.Flag) bool { return settings.Lookup(flag.Name) == nil }))
		_, err := fmt.Fprint(command.OutOrStdout(), text.String())
		return err
	}
}

func writeFlags(text *strings.Builder, title string, flags *pflag.FlagSet) {
	if flags.HasAvailableFlags() {
		fmt.Fprintf(text, "\n%s:\n%s", title, flags.FlagUsagesWrapped(helpWidth))
	}
}

func subset(flags *pflag.FlagSet, wanted func(*pflag.Flag) bool) *pflag.FlagSet {
	some := pflag.NewFlagSet("", pflag.ContinueOnError)
	some.SortFlags = flags.SortFlags
	flags.VisitAll(func(flag *pflag.Flag) {
		if wanted(flag) {
			some.AddFlag(flag)
		}
	})
	return some
}

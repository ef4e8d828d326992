package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const helpWidth = 110

// Flags adds the flags of the named settings, or of all settings if no name is given, to the
// command of this table, and returns the command. Its PreRunE reads the settings; a command that
// has its own PreRunE reads them there.
func (t *Table) Flags(command *cobra.Command, names ...string) *cobra.Command {
	if len(names) > 0 {
		t.wanted = names
	}
	command.Flags().SortFlags = false
	command.Flags().AddFlag(t.file.flag)
	for _, s := range t.settings {
		if slices.Contains(t.wanted, s.name) {
			command.Flags().AddFlag(s.flag)
		}
	}
	command.SetUsageFunc(t.usage)
	if command.PreRunE == nil {
		command.PreRunE = func(*cobra.Command, []string) error { return t.Explain(t.Read()) }
	}
	return command
}

// usage prints the flags of a command by group, and at the end those that are not settings.
func (t *Table) usage(command *cobra.Command) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Usage:\n  %s\n", command.UseLine())
	if command.HasAvailableSubCommands() {
		text.WriteString("\nCommands:\n")
		for _, sub := range command.Commands() {
			fmt.Fprintf(&text, "  %-*s  %s\n", sub.NamePadding(), sub.Name(), sub.Short)
		}
	}
	if command.HasExample() {
		fmt.Fprintf(&text, "\nExamples:\n%s\n", command.Example)
	}
	sets := map[string]*pflag.FlagSet{}
	command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		title := "Other"
		if s, isSetting := flag.Value.(*setting); isSetting {
			title = s.group
		}
		if sets[title] == nil {
			sets[title] = pflag.NewFlagSet(title, pflag.ContinueOnError)
			sets[title].SortFlags = false
		}
		sets[title].AddFlag(flag)
	})
	for _, title := range slices.Concat([]string{t.file.group}, t.groups, []string{"Other"}) {
		if set := sets[title]; set != nil {
			fmt.Fprintf(&text, "\n%s:\n%s", title, set.FlagUsagesWrapped(helpWidth))
		}
	}
	_, err := fmt.Fprint(command.OutOrStdout(), text.String())
	return err
}

// Complete registers the completion of the settings among the flags of a command and its
// subcommands. Cobra keeps registered flags until the process ends, so only a completion request
// may call it.
func Complete(command *cobra.Command) {
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		s, isSetting := flag.Value.(*setting)
		if !isSetting {
			return
		}
		choices := s.choices()
		if s.Type() == "bool" {
			choices = []string{"true", "false"}
		}
		directive := map[string]cobra.ShellCompDirective{
			"":       cobra.ShellCompDirectiveNoFileComp,
			"file":   cobra.ShellCompDirectiveDefault,
			"folder": cobra.ShellCompDirectiveFilterDirs,
		}[s.tag.Get("path")]
		// It fails only for an unknown flag, or for one that is registered already.
		_ = command.RegisterFlagCompletionFunc(flag.Name, cobra.FixedCompletions(choices, directive))
	})
	for _, sub := range command.Commands() {
		Complete(sub)
	}
}

// ExplainFlag suggests the right name for an unknown flag. Of an unknown or malformed flag, it
// repeats at most the name, because the rest can be a secret.
func ExplainFlag(command *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var malformed *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &malformed):
		return errors.New("bad flag syntax: write --name=value")
	case !errors.As(err, &unknown):
		return err
	case unknown.GetSpecifiedShortnames() != "":
		return errors.New("flags begin with two dashes, as in --help")
	}
	var known []string
	command.Flags().VisitAll(func(flag *pflag.Flag) { known = append(known, flag.Name) })
	if near := nearest(unknown.GetSpecifiedName(), known); near != "" {
		return fmt.Errorf("%w: did you mean --%s?", err, near)
	}
	return err
}

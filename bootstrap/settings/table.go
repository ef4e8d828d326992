package settings

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Group is a set of settings under one title, in help and tables.
type Group struct {
	Title    string
	Settings []*Setting
}

// Table holds all settings of the program.
type Table struct {
	groups  []Group
	fields  map[uintptr]oauth.Field     // paths in the configuration, by address
	aliases map[oauth.Field]oauth.Field // the field for each other name that a Mistake may use
	wanted  []string                    // names of the settings that the command uses; empty for all
	file    *Setting                    // path of the file; it cannot be set in the file itself
	path    string                      // value of the setting file
	unread  bool                        // the file exists but is unreadable
}

// NewTable returns a table of the groups, whose settings are bound to the fields of a struct. The
// names of settings must be unique. The aliases are other names that a Mistake may use for fields.
func NewTable(config any, aliases map[oauth.Field]oauth.Field, groups ...Group) *Table {
	t := &Table{groups: groups, aliases: aliases, fields: map[uintptr]oauth.Field{}}
	t.addFields("", reflect.ValueOf(config).Elem())
	t.file = File("config", &t.path,
		"file with settings (default: "+defaultFile+" in the working directory, if it exists)")
	return t
}

// addFields adds the fields of a struct and of the structs in it. Those of an embedded struct have
// the path of the outer one.
func (t *Table) addFields(outer oauth.Field, config reflect.Value) {
	for i := range config.NumField() {
		field, description := config.Field(i), config.Type().Field(i)
		path := outer + oauth.Field(description.Name)
		switch {
		case field.Kind() != reflect.Struct:
			t.fields[field.UnsafeAddr()] = path
		case description.Anonymous:
			t.addFields(outer, field)
		default:
			t.addFields(path+".", field)
		}
	}
}

// All yields every setting.
func (t *Table) All() iter.Seq[*Setting] {
	return func(yield func(*Setting) bool) {
		for _, group := range t.groups {
			for _, s := range group.Settings {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// Given reports whether the setting was set by a flag, the environment or the file. It is false
// before Read.
func (t *Table) Given(name string) bool { return t.lookup(name).origin.source != byDefault }

func (t *Table) lookup(name string) *Setting {
	for s := range t.All() {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Flags adds the flags of the named settings to a command, or of all settings when none is named,
// with their help. The settings are read before the command runs, unless it has its own PreRunE.
func (t *Table) Flags(command *cobra.Command, names ...string) {
	t.wanted = names
	groups := []Group{{Title: "Configuration", Settings: []*Setting{t.file}}}
	for _, group := range t.groups {
		wanted := slices.DeleteFunc(slices.Clone(group.Settings), func(s *Setting) bool { return !t.wants(s) })
		groups = append(groups, Group{Title: group.Title, Settings: wanted})
	}
	var titled []titledFlags
	for _, group := range groups {
		flags := pflag.NewFlagSet(group.Title, pflag.ContinueOnError)
		flags.SortFlags = false
		for _, s := range group.Settings {
			flags.AddFlag(s.flag)
			command.Flags().AddFlag(s.flag)
		}
		titled = append(titled, titledFlags{group.Title, flags})
	}
	command.SetUsageFunc(usageIn(titled))
	if command.PreRunE == nil {
		command.PreRunE = func(*cobra.Command, []string) error { return t.Explain(t.Read()) }
	}
}

// Complete registers the completion of the settings among the flags of a command and its
// subcommands. Cobra keeps registered flags until the process ends, so only a completion request
// may call it.
func Complete(command *cobra.Command) {
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if value, isSetting := flag.Value.(flagValue); isSetting {
			// Fails only for an unknown or a second flag.
			_ = command.RegisterFlagCompletionFunc(flag.Name, value.complete)
		}
	})
	for _, sub := range command.Commands() {
		Complete(sub)
	}
}

// NamesBut returns the names of all other settings.
func (t *Table) NamesBut(others []string) (names []string) {
	for s := range t.All() {
		if !slices.Contains(others, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

// Names returns the names of the group's settings.
func (g Group) Names() (names []string) {
	for _, s := range g.Settings {
		names = append(names, s.Name)
	}
	return names
}

func (t *Table) wants(s *Setting) bool {
	return len(t.wanted) == 0 || slices.Contains(t.wanted, s.Name)
}

// nearest returns the name of the setting that is most similar to the given one, or "".
func (t *Table) nearest(name string) string {
	return nearestOf(name, t.NamesBut(nil))
}

func nearestOf(name string, known []string) (found string) {
	least := min(len(name)/3, 3) + 1
	for _, candidate := range known {
		if distance := levenshtein.ComputeDistance(strings.ToLower(name), candidate); distance < least {
			found, least = candidate, distance
		}
	}
	return found
}

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
		writeFlags(&text, "Other", subset(local, func(flag *pflag.Flag) bool {
			return settings.Lookup(flag.Name) == nil
		}))
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

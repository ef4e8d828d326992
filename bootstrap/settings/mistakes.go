package settings

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Explain lists the mistakes of the configuration, one per line, in the spelling that was used.
func (t *Table) Explain(err error) error {
	switch lines := t.explain(err); len(lines) {
	case 0:
		return nil
	case 1:
		return errors.New(lines[0])
	default:
		return fmt.Errorf("%d settings are wrong:\n  %s", len(lines), strings.Join(lines, "\n  "))
	}
}

func (t *Table) explain(err error) (lines []string) {
	switch e := err.(type) { //nolint:errorlint // the tree is walked by hand, because each branch is a line
	case nil:
		return nil
	case *oauth.Mistake:
		return []string{e.WithNames(t.spelling) + remedy(e)}
	case interface{ Unwrap() []error }:
		for _, branch := range e.Unwrap() {
			lines = append(lines, t.explain(branch)...)
		}
		return lines
	case interface{ Unwrap() error }:
		if mistake := new(oauth.Mistake); errors.As(err, &mistake) {
			return t.explain(e.Unwrap())
		}
	}
	return []string{err.Error() + remedy(err)}
}

func (t *Table) spelling(field oauth.Field) string {
	path := oauth.Field(strings.TrimPrefix(string(field), oauth.OfConfig))
	path = cmp.Or(t.aliases[path], path)
	for s := range t.All() {
		if t.fields[s.address] == path {
			return s.spelled()
		}
	}
	return string(field)
}

// ExplainFlag suggests the right name for an unknown flag. It repeats only the name of a flag,
// because the rest can be a secret.
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
	if near := nearestOf(unknown.GetSpecifiedName(), known); near != "" {
		return fmt.Errorf("%w: did you mean --%s?", err, near)
	}
	return err
}

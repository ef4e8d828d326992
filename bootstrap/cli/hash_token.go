package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pasteport/pasteport/adapters/verification/tokenfile"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

func newHashToken(in io.Reader, out, errOut io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	var person oauth.Principal
	var create bool
	hash := &cobra.Command{
		Use:   "hash-token",
		Short: "Print the token file line of a token",
		// The error does not repeat the argument, which is probably a token.
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return term.Usage(errTokenArgument)
			}
			return nil
		},
		Long: "Read a token of your site from standard input, or prompt for it without echo on a terminal, and print " +
			"its line for a token file. With --new, make the token, and print it once, on standard error.\n" +
			"The line holds the SHA-256 of the token and its person, never the token itself.",
		Example: "  pasteport hash-token --new --subject ada --role editor >>tokens\n" +
			"  pasteport hash-token --token-file tokens --role reader <token.txt >>tokens",
		RunE: func(cmd *cobra.Command, _ []string) error {
			token := rand.Text() + rand.Text() // 260 random bits
			if !create {
				read, err := term.ReadToken(cmd.Context(), in, errOut)
				if err != nil {
					return err
				}
				token = read.Reveal()
			}
			line, err := tokenfile.NewLine(config.Verification.TokenFile, token, person)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(out, line); err != nil || !create {
				return err
			}
			_, err = fmt.Fprintf(errOut, "The token, which is not shown again: %s\n", token)
			return err
		},
	}
	config.Table().Flags(hash, "token-file") // NewLine refuses a token that this file has
	hash.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		if unknown := new(pflag.NotExistError); errors.As(err, &unknown) { // may be a token that starts with a dash
			return term.Usagef("unknown flag; %w", errTokenArgument)
		}
		return term.Usage(settings.ExplainFlag(command, err))
	})
	flags := hash.Flags()
	flags.BoolVar(&create, "new", false, "make a random token instead of reading one")
	flags.StringVar(&person.Subject, "subject", "", "person who owns the token (default: the fingerprint of the token)")
	flags.StringArrayVar(&person.Roles, "role", nil, "role of the person; may be repeated")
	flags.StringArrayVar(&person.Scopes, "scope", nil,
		"scope that the token may grant; may be repeated (default: the server's default)")
	return hash
}

var errTokenArgument = errors.New(
	"the command line is visible to other users, so a token is not read from it: type it when asked, or pipe it in")

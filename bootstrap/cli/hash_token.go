package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pasteport/pasteport/adapters/verification/tokenfile"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/server"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

func newHashToken(in io.Reader, out, errOut io.Writer) *cobra.Command {
	config := server.DefaultConfig()
	var person oauth.Principal
	hash := &cobra.Command{
		Use: "hash-token", Short: "Print the line that stands for a token in a token file", Args: noTokenArgument,
		Long: "Read a token of your site from standard input, or ask for it on a terminal without showing it, and print the line that stands\n" +
			"for it in a token file. The line holds an argon2id hash and who stands behind the token, never the token itself.",
		Example: "  pasteport hash-token --token-file tokens --subject ada --role editor >>tokens\n" +
			"  pasteport hash-token --token-file tokens --role reader <token.txt >>tokens",
		RunE: func(cmd *cobra.Command, _ []string) error {
			token, err := term.ReadToken(cmd.Context(), in, errOut)
			if err != nil {
				return err
			}
			line, err := tokenfile.NewLine(config.Verification.TokenFile, token.Reveal(), person)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(out, line)
			return err
		},
	}
	config.Table().Flags(hash, "token-file") // new lines reuse its salt, so that verifying a token costs one hash
	hash.SetFlagErrorFunc(noTokenFlag)
	flags := hash.Flags()
	flags.StringVar(&person.Subject, "subject", "", "who stands behind the token; without it the token's own fingerprint")
	flags.StringArrayVar(&person.Roles, "role", nil, "role on the site; may be repeated")
	flags.StringArrayVar(&person.Scopes, "scope", nil, "the most that the token may grant; may be repeated; without it the server's default")
	return hash
}

// noTokenArgument keeps tokens out of the history of shells and the list of processes, and does not repeat them.
func noTokenArgument(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return term.Usage(errTokenArgument)
	}
	return nil
}

var errTokenArgument = errors.New("a token is not taken from the command line, where others can see it: type it when asked, or pipe it in")

// noTokenFlag does not repeat an unknown flag, which may be a token that begins with a dash.
func noTokenFlag(command *cobra.Command, err error) error {
	if unknown := new(pflag.NotExistError); errors.As(err, &unknown) {
		return term.Usagef("there is no such flag; %w", errTokenArgument)
	}
	return term.Usage(settings.ExplainFlag(command, err))
}

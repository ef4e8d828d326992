package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

// typedLimit is more than a token may have.
const typedLimit = 8 << 10

func newHashToken(in io.Reader, out, errOut io.Writer) *cobra.Command {
	config := defaultConfig()
	var person oauth.Principal
	hash := &cobra.Command{
		Use: "hash-token", Short: "Print the line that stands for a token in a token file", Args: noTokenArgument,
		Long: "Read a token of your site from standard input, or ask for it on a terminal without showing it, and print the line that stands\n" +
			"for it in a token file. The line holds an argon2id hash and who stands behind the token, never the token itself.",
		Example: "  pasteport hash-token --token-file tokens --subject ada --role editor >>tokens\n" +
			"  pasteport hash-token --token-file tokens --role reader <token.txt >>tokens",
		RunE: func(cmd *cobra.Command, _ []string) error {
			token, err := readToken(cmd.Context(), in, errOut)
			if err != nil {
				return err
			}
			line, err := tokenLine(config.Verification.TokenFile, token, person)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(out, line)
			return err
		},
	}
	config.addSettings(hash, "token-file") // its salt is used, so that a question costs one hash
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
		return usageError{errTokenArgument}
	}
	return nil
}

var errTokenArgument = errors.New("a token is not taken from the command line, where others can see it: type it when asked, or pipe it in")

// noTokenFlag does not repeat an unknown flag either, which may be a token that begins with a dash.
func noTokenFlag(command *cobra.Command, err error) error {
	if unknown := new(pflag.NotExistError); errors.As(err, &unknown) {
		return usageError{fmt.Errorf("there is no such flag; %w", errTokenArgument)}
	}
	return usageError{settings.ExplainFlag(command, err)}
}

// readToken takes one token, as generously as the consent page does (B7).
func readToken(ctx context.Context, in io.Reader, prompt io.Writer) (oauth.HostToken, error) {
	text, err := readTyped(ctx, in, prompt)
	if err != nil {
		return oauth.HostToken{}, fmt.Errorf("reading the token: %w", err)
	}
	if strings.ContainsAny(strings.TrimSpace(text), "\r\n") {
		return oauth.HostToken{}, errors.New("reading the token: there is more than one line: give one token at a time")
	}
	token, err := oauth.ParseHostToken(text)
	if err != nil {
		return oauth.HostToken{}, errors.New("reading the token: it is empty, longer than 4096 bytes, or has control characters")
	}
	return token, nil
}

func readTyped(ctx context.Context, in io.Reader, prompt io.Writer) (string, error) {
	if file, ok := in.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		_, _ = fmt.Fprint(prompt, "Token (it is not shown): ")
		defer func() { _, _ = fmt.Fprintln(prompt) }()
		return readHidden(ctx, int(file.Fd()))
	}
	piped, err := io.ReadAll(io.LimitReader(in, typedLimit))
	return string(piped), err
}

// readHidden gives the terminal back as it was, also to somebody who presses Ctrl-C instead.
func readHidden(ctx context.Context, terminal int) (typed string, err error) {
	before, err := term.GetState(terminal)
	if err != nil {
		return "", err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var line []byte
		line, err = term.ReadPassword(terminal)
		typed = string(line)
	}()
	select {
	case <-done:
		return typed, err
	case <-ctx.Done():
		return "", errors.Join(ctx.Err(), term.Restore(terminal, before))
	}
}

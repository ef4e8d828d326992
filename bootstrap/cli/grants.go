package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/adapters/diagnosis"
	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/application"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/oauth"
)

// grantFilter selects grants; an empty field matches all.
type grantFilter struct{ id, client, name, subject string }

func (f grantFilter) chooses(grant oauth.Connection) bool {
	return oauth.MatchesID(f.id, grant.ID) &&
		(f.client == "" || strings.EqualFold(f.client, grant.ClientHost)) &&
		(f.name == "" || strings.EqualFold(f.name, grant.ClientName)) &&
		(f.subject == "" || f.subject == grant.Subject)
}

func (f *grantFilter) addFlags(command *cobra.Command) {
	command.Flags().
		StringVar(&f.client, "client", "", "only grants of the client with this host, such as client.example")
	command.Flags().StringVar(&f.name, "name", "", "only grants of clients that give themselves this name")
	command.Flags().StringVar(&f.subject, "subject", "", "only grants of this person")
}

func newGrantsList(in io.Reader, out, errOut io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	var filter grantFilter
	var asJSON bool
	var token string
	list := &cobra.Command{
		Use:   "list",
		Short: "List the active grants, oldest first",
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("token") {
				return checkTokenAlone(token, len(args) > 0 || filter != grantFilter{})
			}
			return term.NoArguments(cmd, args)
		},
		Long: "List the grants of clients that have not ended. The command reads the store directly and works " +
			"while the service runs.\n--token - reads a token of your site from standard input and lists what was " +
			"connected with it.",
		Example: "  pasteport grants list --subject ada\n  pasteport grants list --client client.example --json\n" +
			"  pasteport grants list --token - <token.txt",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withGrants(config, errOut, func(grants *application.Server) error {
				chosen := chosenGrants(cmd.Context(), grants, filter)
				if token != "" {
					var err error
					if chosen, err = grantsOfToken(cmd.Context(), grants, in, errOut); err != nil {
						return err
					}
				}
				if asJSON {
					return term.PrintJSONList(out, described(chosen))
				}
				_, err := printGrants(out, chosen)
				return err
			})
		},
	}
	config.Table().Flags(list, service.StoreSettings...)
	filter.addFlags(list)
	list.Flags().StringVar(&token, "token", "", tokenFlagUsage("list"))
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return list
}

func newGrantsEnd(in io.Reader, out, errOut io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	var filter grantFilter
	var all, yes bool
	var token string
	end := &cobra.Command{
		Use:   "end [ID]",
		Short: "End grants permanently",
		Long: "End the grant with this ID or ID prefix, as shown by \"pasteport grants list\" or " +
			"\"pasteport trace\"; " +
			"or all grants of a client or a person,\nor all.\n" +
			"After a leak of a token of your site, --token - reads it from standard input and ends all grants that " +
			"were made with it.\n" +
			"A running service refuses the client's next request and closes its open streams within a second.",
		Example: "  pasteport grants end 5f0c29\n  pasteport grants end --client client.example --subject ada --yes\n" +
			"  pasteport grants end --token - <leaked.txt",
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("token") {
				return checkTokenAlone(token, len(args) > 0 || all || filter != grantFilter{})
			}
			filter.id = strings.Join(args, " ")
			if named := filter.id != ""; len(args) > 1 || named &&
				(all || filter.client+filter.name+filter.subject != "") {
				return term.Usagef("name one grant, or select grants by --client, --name and --subject, or --all")
			}
			if (filter == grantFilter{}) != all {
				return term.Usagef(
					"name the grants by an ID, --client, --name, --subject, or by --token or --all alone")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withGrants(config, errOut, func(grants *application.Server) error {
				if token != "" {
					return endGrantsOfToken(cmd.Context(), grants, in, out, errOut)
				}
				if filter.id != "" {
					if err := checkAlone(cmd.Context(), grants, filter); err != nil {
						return err
					}
				}
				listed, err := printGrants(out, chosenGrants(cmd.Context(), grants, filter))
				if err != nil {
					return err
				}
				if listed.number == 0 {
					return errors.New("no grant was ended: \"pasteport grants list\" shows the active ones")
				}
				if !yes && !confirmed(in, errOut, listed.number) {
					return errors.New("no grant was ended: answer y, or add --yes")
				}
				return endGrants(cmd.Context(), grants, filter, listed, out)
			})
		},
	}
	config.Table().Flags(end, service.StoreSettings...)
	filter.addFlags(end)
	end.Flags().BoolVar(&all, "all", false, "end all grants")
	end.Flags().StringVar(&token, "token", "", tokenFlagUsage("end"))
	end.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return end
}

func tokenFlagUsage(verb string) string {
	return "-: read a token of your site from standard input, and " + verb + " the grants that were made with it"
}

// checkTokenAlone refuses a token on the command line, which other users can
// see, without printing it.
func checkTokenAlone(token string, others bool) error {
	switch {
	case token != "-":
		return term.Usagef("--token takes - only: %w", errTokenArgument)
	case others:
		return term.Usagef("--token selects every grant of the token: leave out all other selections")
	}
	return nil
}

// errNoGrantOfToken is a failure, because the token may be mistyped.
var errNoGrantOfToken = errors.New("no active grant was made with this token: check that it is complete; its grants " +
	"may have ended already. If the service has fields, name its settings with --config")

// grantsOfToken reads a token and iterates over its grants.
func grantsOfToken(ctx context.Context, grants *application.Server, in io.Reader,
	prompt io.Writer) (iter.Seq2[oauth.Connection, error], error) {
	token, err := term.ReadToken(ctx, in, prompt)
	if err != nil {
		return nil, err
	}
	found, err := grants.GrantsOf(ctx, token.Reveal())
	if err != nil {
		return nil, adviseSelection(err, "list")
	}
	if len(found) == 0 {
		return nil, errNoGrantOfToken
	}
	return func(yield func(oauth.Connection, error) bool) {
		for _, grant := range found {
			if !yield(grant, nil) {
				return
			}
		}
	}, nil
}

// endGrantsOfToken needs no confirmation, because who has the token may end its grants, as
// on the connections page.
func endGrantsOfToken(ctx context.Context, grants *application.Server, in io.Reader, out, prompt io.Writer) error {
	token, err := term.ReadToken(ctx, in, prompt)
	if err != nil {
		return err
	}
	ended, err := grants.EndLeaked(ctx, token.Reveal())
	if err != nil {
		return adviseSelection(err, "end")
	}
	if ended == 0 {
		return errNoGrantOfToken
	}
	_, err = fmt.Fprintf(out, "ended: %d\n", ended)
	return err
}

func adviseSelection(err error, verb string) error {
	if several := new(application.SeveralFieldsError); errors.As(err, &several) {
		return fmt.Errorf("%w: %s them by --client, --name or --subject", err, verb)
	}
	return err
}

// withGrants calls use with a server that can list and end the grants of the configured store. The
// server records ended grants in the trace.
func withGrants(config *service.Config, errOut io.Writer, use func(*application.Server) error) error {
	return config.StoreLocation().UseExisting(func(store *persistence.Store) error {
		logger := config.NewLogger(errOut)
		recorder := diagnosis.NewJournal(store, logger)
		defer recorder.Close()
		return use(application.NewServer(config.GrantSettings(store),
			application.Ports{
				Store:   store,
				Journal: recorder,
				Now:     time.Now,
				Logger:  logger,
			}))
	})
}

// chosenGrants iterates over the grants that the filter chooses.
func chosenGrants(ctx context.Context, grants *application.Server,
	filter grantFilter) iter.Seq2[oauth.Connection, error] {
	return func(yield func(oauth.Connection, error) bool) {
		for grant, err := range grants.Grants(ctx) {
			if (err != nil || filter.chooses(grant)) && !yield(grant, err) {
				return
			}
		}
	}
}

// checkAlone refuses an id that does not match exactly one grant, so that end does
// not end more than intended.
func checkAlone(ctx context.Context, grants *application.Server, filter grantFilter) error {
	found := 0
	for _, err := range chosenGrants(ctx, grants, filter) {
		if err != nil {
			return err
		}
		found++
	}
	if found != 1 {
		return fmt.Errorf("%d active grants have an id that starts with %q: \"pasteport grants list\" shows them",
			found, filter.id)
	}
	return nil
}

func confirmed(in io.Reader, prompt io.Writer, grants int) bool {
	_, _ = fmt.Fprintf(prompt, "End %s? Clients then have to connect again. [y/N] ", term.Count(grants, "grant"))
	answer, _ := bufio.NewReader(in).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// shownGrants are what printGrants has printed.
type shownGrants struct {
	number int
	newest time.Time
}

// endGrants ends the grants that were shown, and no newer ones.
func endGrants(ctx context.Context, grants *application.Server, filter grantFilter, shown shownGrants,
	out io.Writer) error {
	ended, err := grants.EndGrants(ctx, func(grant oauth.Connection) bool {
		return filter.chooses(grant) && !grant.CreatedAt.After(shown.newest)
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "ended: %d\n", ended)
	return err
}

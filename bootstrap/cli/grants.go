package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/adapters/journal"
	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/application"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// grantFilter selects grants; an empty field matches all. The token "-" stands for standard input.
type grantFilter struct{ id, client, name, subject, token string }

func (f *grantFilter) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.client, "client", "", "only grants of the client with this host, such as client.example")
	flags.StringVar(&f.name, "name", "", "only grants of clients that give themselves this name")
	flags.StringVar(&f.subject, "subject", "", "only grants of this person")
	flags.StringVar(&f.token, "token", "",
		"-: read a token of your site from standard input, and select the grants that were made with it")
}

// checkToken refuses a token on the command line, which other users can see, without printing it.
// It also refuses other selections: an argument or --all (more), or another field.
func (f grantFilter) checkToken(more bool) error {
	switch {
	case f.token != "-":
		return term.Usagef("--token takes - only: %w", errTokenArgument)
	case more || f != grantFilter{token: f.token}:
		return term.Usagef("--token selects every grant of the token: leave out all other selections")
	}
	return nil
}

func newGrantsList(in io.Reader, out, errOut io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	var filter grantFilter
	var asJSON bool
	list := &cobra.Command{
		Use:   "list",
		Short: "List the active grants, oldest first",
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("token") {
				return filter.checkToken(len(args) > 0)
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
				var chosen []oauth.Connection
				var err error
				if filter.token == "" {
					chosen, err = chooseGrants(cmd.Context(), grants, filter)
				} else {
					err = withToken(cmd.Context(), in, errOut, "list", func(token string) (_ int, err error) {
						chosen, err = grants.Operator.GrantsOf(cmd.Context(), token)
						return len(chosen), err
					})
				}
				switch {
				case err != nil:
					return err
				case asJSON:
					return term.PrintJSON(out, listedGrants(chosen))
				}
				return printGrants(out, chosen)
			})
		},
	}
	config.Table().Flags(list, service.StoreSettings...)
	filter.addFlags(list)
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return list
}

func newGrantsEnd(in io.Reader, out, errOut io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	var filter grantFilter
	var all, yes bool
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
				return filter.checkToken(len(args) > 0 || all)
			}
			filter.id = strings.Join(args, " ")
			switch others := filter.client+filter.name+filter.subject != ""; {
			case len(args) > 1 || filter.id != "" && (all || others):
				return term.Usagef("name one grant, or select grants by --client, --name and --subject, or --all")
			case (filter == grantFilter{}) != all: // neither selects, or both
				return term.Usagef(
					"name the grants by an ID, --client, --name, --subject, or by --token or --all alone")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withGrants(config, errOut, func(grants *application.Server) error {
				if filter.token != "" {
					return endGrantsOfToken(cmd.Context(), grants, in, out, errOut)
				}
				chosen, err := chooseGrants(cmd.Context(), grants, filter)
				switch {
				case err != nil:
					return err
				case filter.id != "" && len(chosen) != 1: // so that end does not end more than intended
					return fmt.Errorf("%d active grants have an id that starts with %q: \"pasteport grants list\" "+
						"shows them", len(chosen), filter.id)
				}
				if err := printGrants(out, chosen); err != nil {
					return err
				}
				switch {
				case len(chosen) == 0:
					return errors.New("no grant was ended: \"pasteport grants list\" shows the active ones")
				case !yes && !confirmed(in, errOut, len(chosen)):
					return errors.New("no grant was ended: answer y, or add --yes")
				}
				return endGrants(cmd.Context(), grants, chosen, out)
			})
		},
	}
	config.Table().Flags(end, service.StoreSettings...)
	filter.addFlags(end)
	end.Flags().BoolVar(&all, "all", false, "end all grants")
	end.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return end
}

// withGrants calls use with a server that can list and end the grants of the configured store. The
// server records ended grants in the trace.
func withGrants(config *service.Config, errOut io.Writer, use func(*application.Server) error) error {
	return config.StoreLocation().UseExisting(func(store *persistence.Store) error {
		logger := config.NewLogger(errOut)
		recorder := journal.New(store, logger, time.Now)
		defer recorder.Close()
		settings := config.GrantSettings(store)
		clients, _ := client.NewRules(settings.Config) // the service reports the mistakes
		return use(application.NewServer(settings, clients, application.Ports{
			Store:   store,
			Journal: recorder,
			Now:     time.Now,
			Logger:  logger,
		}))
	})
}

func chooseGrants(ctx context.Context, grants *application.Server,
	filter grantFilter) (chosen []oauth.Connection, err error) {
	for grant, err := range grants.Operator.Grants(ctx) {
		if err != nil {
			return nil, err
		}
		if oauth.MatchesID(filter.id, grant.ID) &&
			(filter.client == "" || strings.EqualFold(filter.client, grant.ClientHost)) &&
			(filter.name == "" || strings.EqualFold(filter.name, grant.ClientName)) &&
			isSubject(filter.subject, grant.Subject) {
			chosen = append(chosen, grant)
		}
	}
	return chosen, nil
}

// withToken reads a token and calls use, which returns the number of grants of the token. An error
// uses the verb to say what to do with them.
func withToken(ctx context.Context, in io.Reader, prompt io.Writer, verb string,
	use func(token string) (int, error)) error {
	token, err := term.ReadToken(ctx, in, prompt)
	if err != nil {
		return err
	}
	grants, err := use(token.Reveal())
	if several := new(application.SeveralFieldsError); errors.As(err, &several) {
		return fmt.Errorf("%w: %s them by --client, --name or --subject", err, verb)
	}
	if err == nil && grants == 0 { // a failure, because the token may be mistyped
		return errors.New("no active grant was made with this token: check that it is complete; its grants may have " +
			"ended already. If the service has fields, name its settings with --config")
	}
	return err
}

// endGrantsOfToken does not ask for confirmation, because a person with the token can also end its
// grants on the connections page.
func endGrantsOfToken(ctx context.Context, grants *application.Server, in io.Reader, out, prompt io.Writer) error {
	return withToken(ctx, in, prompt, "end", func(token string) (ended int, err error) {
		if ended, err = grants.Operator.EndLeaked(ctx, token); err == nil && ended > 0 {
			_, err = fmt.Fprintf(out, "ended: %d\n", ended)
		}
		return ended, err
	})
}

// endGrants ends the grants that were shown, and no newer ones.
func endGrants(ctx context.Context, grants *application.Server, shown []oauth.Connection, out io.Writer) error {
	chosen := map[string]bool{}
	for _, grant := range shown {
		chosen[grant.ID] = true
	}
	isChosen := func(g oauth.Connection) bool { return chosen[g.ID] }
	ended, err := grants.Operator.EndGrants(ctx, isChosen, oauth.EndedByOperator)
	if err == nil {
		_, err = fmt.Fprintf(out, "ended: %d\n", ended)
	}
	return err
}

func confirmed(in io.Reader, prompt io.Writer, grants int) bool {
	_, _ = fmt.Fprintf(prompt, "End %s? Clients then have to connect again. [y/N] ", term.Count(grants, "grant"))
	answer, _ := bufio.NewReader(in).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

func printGrants(out io.Writer, grants []oauth.Connection) error {
	if len(grants) == 0 {
		_, err := fmt.Fprintln(out, "No active grants match.")
		return err
	}
	table := term.NewTable(out, "ID", "CLIENT", "NAME", "SERVER", "SUBJECT", "ACCOUNT", "LAST USED")
	for _, grant := range grants {
		used, server := "never", column(grant.ResourceName)
		if !grant.LastUsedAt.IsZero() {
			used = term.Time(grant.LastUsedAt)
		}
		if url := []rune(grant.Resource.String()); server == "" {
			server = string(url)
			if len(url) > columnWidth { // keeps the end, where URLs differ
				server = "…" + string(url[len(url)-columnWidth+1:])
			}
		}
		table.Row(oauth.ShortID(grant.ID), column(grant.ClientHost), column(grant.ClientName), server,
			column(grant.Subject), column(grant.Account), used)
	}
	return table.Flush()
}

// columnWidth keeps the tables of grants and calls within 120 columns.
const columnWidth = 16

// isSubject reports whether a subject is the wanted one; "" wants all. A subject that is the
// fingerprint of a key matches also in the short form that the tables show.
func isSubject(wanted, subject string) bool {
	return wanted == "" || wanted == subject || strings.HasPrefix(subject, "token-") && wanted == column(subject)
}

// column returns a text cut to the width of a column.
func column(text string) string { return term.Cut(text, columnWidth) }

// listedGrant is the JSON form of a grant.
type listedGrant struct {
	ID         string    `json:"id"`
	Client     string    `json:"client"`
	Name       string    `json:"name"`
	Resource   string    `json:"resource"`
	Server     string    `json:"resource_name"`
	Subject    string    `json:"subject"`
	Account    string    `json:"account"`
	Scopes     []string  `json:"scopes"`
	Waiting    bool      `json:"waiting"`
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
	EndsBy     time.Time `json:"ends_by"`
	Latest     time.Time `json:"ends_at_latest"`
}

func listedGrants(grants []oauth.Connection) []listedGrant {
	listed := make([]listedGrant, 0, len(grants))
	for _, grant := range grants {
		listed = append(listed, listedGrant{
			ID:         grant.ID,
			Client:     grant.ClientHost,
			Name:       grant.ClientName,
			Resource:   grant.Resource.String(),
			Server:     grant.ResourceName,
			Subject:    grant.Subject,
			Account:    grant.Account,
			Scopes:     strings.Fields(grant.Scopes.String()),
			Waiting:    grant.Waiting,
			CreatedAt:  grant.CreatedAt,
			LastUsedAt: grant.LastUsedAt,
			EndsBy:     grant.EndsBy,
			Latest:     grant.EndsAtLatest,
		})
	}
	return listed
}

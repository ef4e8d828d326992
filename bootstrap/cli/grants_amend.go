package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/application"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/oauth"
)

func newGrantsAmend(out, errOut io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	var by oauth.Amendment
	var label, scopes string
	amend := &cobra.Command{
		Use:   "amend ID",
		Short: "Name a grant, or narrow it",
		Long: "Change the grant with this ID or ID prefix, as shown by \"pasteport grants list\": give it a name, " +
			"take scopes away, or let it end earlier.\nNothing widens a grant: a scope that it does not have and " +
			"a later end change nothing.\nA running service obeys at the client's next request.",
		Example: "  pasteport grants amend 5f0c29 --label laptop\n" +
			"  pasteport grants amend 5f0c29 --scopes articles:read --ends-in 24h",
		Args: func(cmd *cobra.Command, args []string) error {
			changed := cmd.Flags().Changed
			if len(args) != 1 || args[0] == "" || !changed("label") && !changed("scopes") && !changed("ends-in") {
				return term.Usagef("name one grant, and --label, --scopes or --ends-in")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("label") {
				by.Label = &label
			}
			if cmd.Flags().Changed("scopes") {
				kept := oauth.NewScopes(strings.Fields(strings.ReplaceAll(scopes, ",", " "))...)
				by.Scopes = &kept
			}
			return withGrants(config, errOut, func(grants *application.Server) error {
				filter := grantFilter{id: args[0]}
				if err := checkAlone(cmd.Context(), grants, filter); err != nil {
					return err
				}
				if _, err := grants.AmendGrants(cmd.Context(), filter.chooses, by); err != nil {
					return err
				}
				_, err := printGrants(out, chosenGrants(cmd.Context(), grants, filter))
				return err
			})
		},
	}
	config.Table().Flags(amend, service.StoreSettings...)
	amend.Flags().StringVar(&label, "label", "", "name for the grant, at most 60 characters")
	amend.Flags().StringVar(&scopes, "scopes", "", "the scopes that the grant keeps, separated by spaces or commas")
	amend.Flags().DurationVar(&by.EndsIn, "ends-in", 0, "time until the latest end, such as 24h")
	return amend
}

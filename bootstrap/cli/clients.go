package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
)

func newClientsList(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	settings := config.Table()
	list := &cobra.Command{
		Use:   "list",
		Short: "List the documents of clients that are pinned or stored",
		Args:  term.NoArguments,
		Long: "List the documents of clients that the service has without a fetch: those in the folder " +
			"client-documents, and those of clients that\n" +
			"a person has approved, which serve for 30 days while the host of the client cannot be reached.",
		Example: "  pasteport clients list --config /etc/pasteport.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			pinned, err := config.PinnedClients(cmd.Context())
			if err != nil {
				return settings.Explain(err)
			}
			return settings.Explain(config.StoreLocation().UseExisting(func(store *persistence.Store) error {
				stored, err := store.ClientDocuments(cmd.Context())
				if err != nil {
					return err
				}
				if len(pinned)+len(stored) == 0 {
					_, err := fmt.Fprintln(out,
						"No document is pinned or stored. A document is stored when a person approves its client.")
					return err
				}
				table := term.NewTable(out, "URL", "SOURCE", "LAST CHECKED", "AGE")
				for _, p := range pinned {
					table.Row(p.Client.ID().String(), p.File, "", "")
				}
				for _, s := range stored {
					age := time.Since(s.CheckedAt).Round(time.Minute).String()
					table.Row(s.URL, "store", term.Time(s.CheckedAt), age)
				}
				return table.Flush()
			}))
		},
	}
	settings.Flags(list, slices.Concat(service.StoreSettings, service.EgressSettings)...)
	return list
}

func newClientsFetch(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	settings := config.Table()
	fetch := &cobra.Command{
		Use:   "fetch URL",
		Short: "Print the metadata document of a client, to pin it",
		Args:  term.OneArgument("name one client_id, the https URL of a metadata document"),
		Long: "Fetch the metadata document at a client_id as a service with these settings does, check it, and print " +
			"it. Run it on a computer that\n" +
			"can reach the host of the client, and put the output into the folder client-documents of the service.",
		Example: "  pasteport clients fetch https://claude.ai/oauth/mcp-oauth-client-metadata > claude.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			probe, err := config.NewClientProbe()
			if err != nil {
				return settings.Explain(err)
			}
			answer, err := probe.Fetch(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(out, term.EscapeJSON(strings.TrimSpace(string(answer.Body))))
			return err
		},
	}
	settings.Flags(fetch, service.EgressSettings...)
	return fetch
}

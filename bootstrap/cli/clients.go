package cli

import (
	"context"
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

// knownDocument is a document that the service has without a fetch.
type knownDocument struct {
	URL       string     `json:"url"`
	Source    string     `json:"source"`               // the file of a pinned document, or "store"
	CheckedAt *time.Time `json:"checked_at,omitempty"` // nil for a pinned document
}

const storeSource = "store"

func newClientsList(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	settings := config.Table()
	var asJSON bool
	list := &cobra.Command{
		Use:   "list",
		Short: "List the documents of clients that are pinned or stored",
		Args:  term.NoArguments,
		Long: "List the documents of clients that the service has without a fetch: those in the folder " +
			"client-documents, and those of clients that\n" +
			"a person has approved, which serve for 30 days while the host of the client cannot be reached.",
		Example: "  pasteport clients list\n  pasteport clients list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			known, err := knownDocuments(cmd.Context(), config)
			if err != nil {
				return settings.Explain(err)
			}
			if asJSON {
				return term.PrintJSON(out, append([]knownDocument{}, known...))
			}
			return printDocuments(out, known, time.Now())
		},
	}
	settings.Flags(list, slices.Concat(service.StoreSettings, service.EgressSettings)...)
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return list
}

func newClientsFetch(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	settings := config.Table()
	fetch := &cobra.Command{
		Use:   "fetch URL",
		Short: "Print the metadata document of a client, to pin it",
		Args:  exactlyOneClient,
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
			_, err = fmt.Fprintln(out, withoutControls(strings.TrimSpace(string(answer.Body))))
			return err
		},
	}
	settings.Flags(fetch, service.EgressSettings...)
	return fetch
}

// withoutControls escapes the control characters that JSON allows in its texts and a terminal would
// obey.
func withoutControls(document string) string {
	var escaped strings.Builder
	for _, r := range document {
		if r >= 0x7f && r <= 0x9f {
			_, _ = fmt.Fprintf(&escaped, `\u%04x`, r)
			continue
		}
		escaped.WriteRune(r)
	}
	return escaped.String()
}

func exactlyOneClient(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return term.Usagef("name one client_id, the https URL of a metadata document")
	}
	return nil
}

// knownDocuments returns the pinned documents, then the stored ones.
func knownDocuments(ctx context.Context, config *service.Config) (known []knownDocument, err error) {
	pinned, err := config.PinnedClients(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range pinned {
		known = append(known, knownDocument{URL: p.Client.ID().String(), Source: p.File})
	}
	err = config.StoreLocation().UseExisting(func(store *persistence.Store) error {
		stored, err := store.ClientDocuments(ctx)
		for _, s := range stored {
			known = append(known, knownDocument{s.URL, storeSource, &s.CheckedAt})
		}
		return err
	})
	return known, err
}

func printDocuments(out io.Writer, known []knownDocument, now time.Time) error {
	if len(known) == 0 {
		_, err := fmt.Fprintln(out,
			"No document is pinned or stored. A document is stored when a person approves its client.")
		return err
	}
	table := term.NewTable(out, "URL", "SOURCE", "LAST CHECKED", "AGE")
	for _, d := range known {
		checked, age := "", ""
		if d.CheckedAt != nil {
			checked, age = term.Time(*d.CheckedAt), now.Sub(*d.CheckedAt).Round(time.Minute).String()
		}
		table.Row(d.URL, d.Source, checked, age)
	}
	return table.Flush()
}

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/oauth"
)

// knownDocument is a document that the service has without a fetch.
type knownDocument struct {
	URL       string             `json:"url"`
	Kind      oauth.DocumentKind `json:"kind"`
	Source    string             `json:"source"`               // the file of a pinned document, or "store"
	CheckedAt *time.Time         `json:"checked_at,omitempty"` // nil for a pinned document
	Withdrawn bool               `json:"withdrawn,omitempty"`  // its client has withdrawn it; body is empty
	body      []byte
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
			"client-documents, and the last good ones of\n" +
			"clients that a person has approved, which serve for 30 days while the host of the client cannot be " +
			"reached.",
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

func newClientsCheck(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	settings := config.Table()
	check := &cobra.Command{
		Use:   "check",
		Short: "Compare pinned and stored documents with what their clients publish today",
		Args:  term.NoArguments,
		Long: "Fetch the metadata document of every client of \"pasteport clients list\", and compare. A document " +
			"that cannot be fetched from here is\n" +
			"named, but is not a difference. Exit codes: 0: no difference; 1: a document differs, was withdrawn or " +
			"is not valid any more; 2: wrong usage.",
		Example: "  pasteport clients check --config /etc/pasteport.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			known, err := knownDocuments(cmd.Context(), config)
			if err != nil {
				return settings.Explain(err)
			}
			probe, err := config.NewClientProbe()
			if err != nil {
				return settings.Explain(err)
			}
			return checkDocuments(cmd.Context(), probe, known, term.New(out))
		},
	}
	settings.Flags(check, slices.Concat(service.StoreSettings, service.EgressSettings)...)
	return check
}

// knownDocuments returns the pinned documents, then the stored ones.
func knownDocuments(ctx context.Context, config *service.Config) (known []knownDocument, err error) {
	pinned, err := config.PinnedClients(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range pinned {
		known = append(known, knownDocument{
			URL:    p.Client.ID().String(),
			Kind:   oauth.MetadataDocument,
			Source: p.File,
			body:   p.Body,
		})
	}
	err = config.StoreLocation().UseExisting(func(store *persistence.Store) error {
		stored, err := store.ClientDocuments(ctx)
		for _, s := range stored {
			known = append(known, knownDocument{s.URL, s.Kind, storeSource, &s.CheckedAt, s.Withdrawn(), s.Body})
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
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "URL\tKIND\tSOURCE\tLAST CHECKED\tAGE")
	for _, d := range known {
		checked, age := "-", "-"
		if d.CheckedAt != nil {
			checked, age = term.Time(*d.CheckedAt), now.Sub(*d.CheckedAt).Round(time.Minute).String()
		}
		if d.Withdrawn {
			age += ", withdrawn"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", d.URL, d.Kind, d.Source, checked, age)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the documents: %w", err)
	}
	return nil
}

// checkDocuments compares metadata documents with the published ones. Key sets are left out,
// because clients replace their keys regularly.
func checkDocuments(ctx context.Context, probe *bootstrap.ClientProbe, known []knownDocument, t term.Terminal) error {
	known = slices.DeleteFunc(known, func(d knownDocument) bool {
		return d.Kind != oauth.MetadataDocument || d.Withdrawn
	})
	differing := 0
	for i, fetched := range fetchAll(ctx, probe, known) {
		d := known[i]
		difference, unknown := compare(d.body, fetched)
		status, seen := t.Green("same     "), d.Source
		switch {
		case unknown != "":
			status, seen = "UNCHECKED", d.Source+": "+unknown
		case difference != "":
			differing++
			status, seen = t.Red("DIFFERS  "), d.Source+": "+difference
		}
		t.Printf("%s  %s  %s\n", status, d.URL, seen)
	}
	if differing > 0 {
		return fmt.Errorf("%d of %d documents differ from what their clients publish: fetch pinned ones again with "+
			"\"pasteport clients fetch\"; "+
			"a service renews stored ones by itself", differing, len(known))
	}
	return nil
}

// fetchedDocument is the result of a fetch.
type fetchedDocument struct {
	answer bootstrap.ClientAnswer
	err    error
}

const fetchesAtOnce = 8

// fetchAll fetches the documents, several at once, and returns the results in their order.
func fetchAll(ctx context.Context, probe *bootstrap.ClientProbe, known []knownDocument) []fetchedDocument {
	results := make([]fetchedDocument, len(known))
	var fetches errgroup.Group
	fetches.SetLimit(fetchesAtOnce)
	for i, d := range known {
		fetches.Go(func() error {
			results[i].answer, results[i].err = probe.Fetch(ctx, d.URL)
			return nil
		})
	}
	_ = fetches.Wait()
	return results
}

// compare returns what differs, or why nothing is known about it.
func compare(body []byte, fetched fetchedDocument) (difference, unknown string) {
	if err := fetched.err; err != nil {
		reason := strings.TrimPrefix(err.Error(), "oauth: ")
		if fetched.answer.Withdrawn {
			return reason, ""
		}
		return "", "cannot be fetched from here: " + reason
	}
	members := differingMembers(body, fetched.answer.Body)
	if len(members) == 0 {
		return "", ""
	}
	return "another " + strings.Join(members, ", "), ""
}

const maxNamedMembers = 10

func differingMembers(one, other []byte) (names []string) {
	var a, b map[string]any
	if json.Unmarshal(one, &a) != nil || json.Unmarshal(other, &b) != nil {
		return []string{"document"}
	}
	for _, name := range slices.Sorted(maps.Keys(merged(a, b))) {
		if reflect.DeepEqual(a[name], b[name]) {
			continue
		}
		if len(names) == maxNamedMembers {
			return append(names, "…")
		}
		names = append(names, fmt.Sprintf("%.60q", name)) // quoted, because the client chooses the names
	}
	return names
}

func merged(one, other map[string]any) map[string]any {
	all := maps.Clone(one)
	maps.Copy(all, other)
	return all
}

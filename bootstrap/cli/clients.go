package cli

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/application"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/oauth"
)

func newClientsList(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	settings := config.Table()
	return settings.Flags(&cobra.Command{
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
					table.Row(p.Client.ID.String(), p.File, "", "")
				}
				for _, s := range stored {
					age := time.Since(s.CheckedAt).Round(time.Minute).String()
					table.Row(s.URL, "store", term.Time(s.CheckedAt), age)
				}
				return table.Flush()
			}))
		},
	}, slices.Concat(service.StoreSettings, service.EgressSettings)...)
}

func newClientsFetch(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	settings := config.Table()
	return settings.Flags(&cobra.Command{
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
	}, service.EgressSettings...)
}

func newClientsRegister(out, errOut io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	settings := config.Table()
	var name string
	var redirects []string
	var withSecret bool
	register := &cobra.Command{
		Use:   "register",
		Short: "Register a client, for a form that asks for its id",
		Args:  term.NoArguments,
		Long: "Print a client_id, and with --secret a client_secret, to paste into a form of an app that cannot " +
			"register itself. Nothing is stored:\n" +
			"both follow from the server secret, and work until it is forgotten. The service needs self-registration.",
		Example: "  pasteport clients register --config /etc/pasteport.yaml --name \"Copilot Studio\" --secret \\\n" +
			"    --redirect-uri https://global.consent.azure-apim.net/redirect/example",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if name == "" || len(redirects) == 0 {
				return term.Usagef("name the client with --name and its redirect URI with --redirect-uri")
			}
			switch { // a client_id that the service does not know is of no use
			case config.Issuer == "":
				return settings.Explain(oauth.NewMistake("Issuer", "is missing: write that of the service"))
			case !config.SelfRegistration:
				return settings.Explain(oauth.NewMistake("SelfRegistration", "is off, so the service would refuse "+
					"the client: switch it on for both"))
			}
			uris, method := []any{}, oauth.PublicClient // Register takes a document as JSON decodes it
			for _, uri := range redirects {
				uris = append(uris, uri)
			}
			if withSecret {
				method = oauth.ClientSecretBasic
			}
			return withGrants(config, errOut, func(server *application.Server) error {
				registered, err := server.Authorize.Register(cmd.Context(), map[string]any{
					"client_name":                name,
					"redirect_uris":              uris,
					"grant_types":                []any{"authorization_code", "refresh_token"},
					"token_endpoint_auth_method": string(method),
				})
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(out, "client_id:", registered.Client.ID)
				if err == nil && withSecret {
					_, err = fmt.Fprintln(out, "client_secret:", registered.Secret.Reveal())
				}
				return err
			})
		},
	}
	settings.Flags(register, slices.Concat(service.StoreSettings,
		[]string{"issuer", "self-registration", "allow-clients", "allowed-private-schemes"})...)
	register.Flags().StringVar(&name, "name", "", "name of the client, which people see")
	register.Flags().StringArrayVar(&redirects, "redirect-uri", nil, "redirect URI of the client; may be repeated")
	register.Flags().BoolVar(&withSecret, "secret", false, "give the client a secret, which it has to use")
	return register
}

// knownClient is a client that many people use. Its document is the URL of its metadata, which is
// its client_id, or "" if it registers itself.
type knownClient struct{ name, document string }

// knownClients lists the clients for which docs/clients.md has evidence.
var knownClients = []knownClient{
	{"Claude", "https://claude.ai/oauth/mcp-oauth-client-metadata"},
	{"Claude Code", "https://claude.ai/oauth/claude-code-client-metadata"},
	{"ChatGPT", "https://chatgpt.com/oauth/client.json"},
	{"Codex", "https://chatgpt.com/oauth/codex/client.json"},
	{"VS Code", "https://vscode.dev/oauth/client-metadata.json"},
	{"VS Code Insiders", "https://insiders.vscode.dev/oauth/client-metadata.json"},
	{"GitHub Copilot CLI", "https://github.com/copilot/cli/client-metadata.json"},
	{"Goose", "https://goose-docs.ai/oauth/client-metadata.json"},
	{"Zed", "https://zed.dev/oauth/client-metadata.json"},
	{"Factory Droid", "https://api.factory.ai/mcp/oauth-client"},
	{"Grok", "https://grok.com/oauth/mcp-client.json"},
	{"Notion", "https://app.notion.com/oauth/mcp-client-metadata.json"},
	{"Cursor", ""}, {"Gemini CLI", ""}, {"opencode", ""}, {"LM Studio", ""}, {"Warp", ""}, {"Raycast", ""},
	{"Cline", ""}, {"Amp", ""}, {"GitHub Copilot in JetBrains", ""}, {"mcp-remote", ""}, {"MCP Inspector", ""},
	{"Microsoft Copilot Studio", ""}, {"Microsoft 365 Copilot", ""}, {"Mistral Le Chat", ""},
}

// admittedBy says "yes", or which setting keeps the client out.
func (c knownClient) admittedBy(config *service.Config) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(c.document, "https://"), "/")
	switch {
	case host == "" && !config.SelfRegistration:
		return "no: self-registration"
	case host != "" && len(config.AllowClients) > 0 && !config.Allows(host):
		return "no: allow-clients"
	}
	return "yes"
}

func newClientsKnown(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	settings := config.Table()
	return settings.Flags(&cobra.Command{
		Use:   "known",
		Short: "List well-known clients that may connect, and fetch their documents",
		Args:  term.NoArguments,
		Long: "List well-known clients: whether a service with these settings admits them, and whether it could " +
			"fetch their metadata documents\n" +
			"from this computer. The exit code is 1 if a document cannot be fetched.",
		Example: "  pasteport clients known --config /etc/pasteport.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			probe, err := config.NewClientProbe()
			if err != nil {
				return settings.Explain(err)
			}
			documents, failed := make([]string, len(knownClients)), make([]bool, len(knownClients))
			var fetches sync.WaitGroup
			for i, client := range knownClients {
				if client.document == "" {
					documents[i] = "registers itself"
					continue
				}
				fetches.Go(func() {
					answer, err := probe.Fetch(cmd.Context(), client.document)
					documents[i], failed[i] = fetchResult(answer, err), err != nil
				})
			}
			fetches.Wait()
			table := term.NewTable(out, "CLIENT", "ADMITTED", "DOCUMENT")
			for i, client := range knownClients {
				table.Row(client.name, client.admittedBy(config), documents[i])
			}
			if err := table.Flush(); err != nil {
				return err
			}
			if slices.Contains(failed, true) {
				return errors.New("some documents cannot be fetched from this computer: pin them with " +
					"client-documents, or fetch them through metadata-proxy")
			}
			return nil
		},
	}, append([]string{"self-registration", "allow-clients"}, service.EgressSettings...)...)
}

func fetchResult(answer bootstrap.ClientAnswer, err error) string {
	switch {
	case err == nil:
		return "can be fetched"
	case answer.Mitigated != "" || answer.Status == http.StatusForbidden || answer.Status == http.StatusTooManyRequests:
		return fmt.Sprintf("blocked with status %d", answer.Status)
	}
	return strings.TrimPrefix(err.Error(), "oauth: ")
}

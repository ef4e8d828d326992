package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// knownClient is a client that many people use. Its document is the URL of its metadata, which is
// its client_id, or "" if it registers itself.
type knownClient struct{ name, document string }

// knownClients have their evidence in docs/clients.md.
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
			return printKnown(cmd.Context(), out, config, probe)
		},
	}, append([]string{"self-registration", "allow-clients"}, service.EgressSettings...)...)
}

func printKnown(ctx context.Context, out io.Writer, config *service.Config, probe *bootstrap.ClientProbe) error {
	documents, failed := make([]string, len(knownClients)), make([]bool, len(knownClients))
	var fetches sync.WaitGroup
	for i, client := range knownClients {
		if client.document == "" {
			documents[i] = "registers itself"
			continue
		}
		fetches.Go(func() {
			answer, err := probe.Fetch(ctx, client.document)
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
		return errors.New("some documents cannot be fetched from this computer: pin them with client-documents, or " +
			"fetch them through metadata-proxy")
	}
	return nil
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

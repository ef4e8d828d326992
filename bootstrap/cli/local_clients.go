package cli

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// localClient is a client on this computer, with the command that connects it.
type localClient struct{ name, command, needs string }

// localClients returns commands for a POSIX shell. The MCP Inspector has no option for a client_id,
// so it registers itself.
func localClients(config service.Config, endpoint string) (clients []localClient) {
	name, id := localName(endpoint), config.LocalClientID()
	if config.SelfRegistration {
		clients = append(clients, localClient{
			name: "MCP Inspector",
			command: shell("npx", "-y", "@modelcontextprotocol/inspector@2", "--transport", "http",
				"--server-url", endpoint),
			needs: "Node 22.19 or newer",
		})
	}
	return append(clients,
		localClient{name: "Claude Code",
			command: shell("claude", "mcp", "add", "--transport", "http", "--client-id", id, name, endpoint)},
		localClient{name: "VS Code",
			command: shell("code", "--add-mcp", fmt.Sprintf(
				`{"name":%q,"type":"http","url":%q,"oauth":{"clientId":%q}}`, name, endpoint, id))},
		localClient{name: "mcp-remote", command: shell("npx", "-y", "mcp-remote", endpoint,
			"--static-oauth-client-info", fmt.Sprintf(`{"client_id":%q}`, id))},
	)
}

const lettersAndDigits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// localName returns a name for the MCP server that every client accepts: letters, digits and
// hyphens. It has the whole path, because the paths of several servers may end alike.
func localName(endpoint string) string {
	at, err := url.Parse(endpoint)
	if err != nil {
		return "local"
	}
	words := strings.FieldsFunc(at.Path, func(r rune) bool { return !strings.ContainsRune(lettersAndDigits, r) })
	return strings.Join(append([]string{"local"}, words...), "-")
}

// shell returns a command line for a POSIX shell.
func shell(words ...string) string {
	quoted := make([]string, 0, len(words))
	for _, word := range words {
		quoted = append(quoted, term.Quote(word))
	}
	return strings.Join(quoted, " ")
}

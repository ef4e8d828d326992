package cli

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// localClient is a client on this computer, with the command that connects it.
type localClient struct{ name, command string }

// localClients returns commands for a POSIX shell. The MCP Inspector has no option for a client_id,
// so it registers itself.
func localClients(config service.Config, endpoint string) (clients []localClient) {
	name, id := localName(endpoint), config.LocalClientID()
	if config.SelfRegistration {
		clients = append(clients, localClient{"MCP Inspector", shell("npx", "-y", "@modelcontextprotocol/inspector@2",
			"--transport", "http", "--server-url", endpoint) + "  # needs Node 22.19 or newer"})
	}
	return append(clients,
		localClient{"Claude Code",
			shell("claude", "mcp", "add", "--transport", "http", "--client-id", id, name, endpoint)},
		localClient{"VS Code", shell("code", "--add-mcp",
			fmt.Sprintf(`{"name":%q,"type":"http","url":%q,"oauth":{"clientId":%q}}`, name, endpoint, id))},
		localClient{"mcp-remote", shell("npx", "-y", "mcp-remote", endpoint, "--static-oauth-client-info",
			fmt.Sprintf(`{"client_id":%q}`, id))},
	)
}

var otherCharacters = regexp.MustCompile(`[^A-Za-z0-9]+`)

// localName returns a name for the MCP server that every client accepts: letters, digits and
// hyphens. It has the whole path, because the paths of several servers may end alike.
func localName(endpoint string) string {
	at, err := url.Parse(endpoint)
	if err != nil {
		return "local"
	}
	return "local" + strings.TrimRight(otherCharacters.ReplaceAllString(at.Path, "-"), "-")
}

// shell returns a command line for a POSIX shell.
func shell(words ...string) string {
	for i, word := range words {
		words[i] = term.Quote(word)
	}
	return strings.Join(words, " ")
}

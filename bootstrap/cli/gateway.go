package cli

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/server"
)

func newGateway(out, errOut io.Writer) *cobra.Command {
	config := server.DefaultConfig()
	gateway := &cobra.Command{
		Use: "gateway", Short: "Put OAuth in front of an existing MCP server", Args: term.NoArguments,
		Long: "Put OAuth in front of an MCP server that takes an API key as bearer token, in any language and without touching it, until it is told\n" +
			"to stop (SIGTERM or Ctrl-C). People paste their key once; clients get short-lived tokens, and the server gets the key.\n\n" +
			"Every setting can be given by a flag, by an environment variable (--upstream-timeout is PASTEPORT_UPSTREAM_TIMEOUT) or by a\n" +
			"line of a YAML file (upstream-timeout: 1m). A flag goes before a variable, a variable before the file.",
		Example: "  pasteport gateway --dev --upstream http://127.0.0.1:9000/mcp\n" +
			"  pasteport gateway --upstream http://127.0.0.1:9000/mcp --issuer https://mcp.example.com --data /var/lib/pasteport\n" +
			"  pasteport gateway --config /etc/pasteport.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			config.Logger = config.NewLogger(errOut)
			return serveUntilStopped(cmd, *config, out)
		},
	}
	addServiceSettings(gateway, config, server.SiteSettings, requireUpstreams)
	return gateway
}

func requireUpstreams(config server.Config) error {
	if config.IsGateway() {
		return nil
	}
	return errors.New("nobody has said which MCP server is behind the gateway: add --upstream http://127.0.0.1:9000/mcp")
}

package service

import (
	"errors"
	"io"

	"github.com/spf13/cobra"
)

func newGatewayCommand(out, errOut io.Writer) *cobra.Command {
	config := defaultConfig()
	gateway := &cobra.Command{
		Use: "gateway", Short: "Put OAuth in front of an existing MCP server", Args: noArguments,
		Long: "Put OAuth in front of an MCP server that takes an API key as bearer token, in any language and without touching it, until it is told\n" +
			"to stop (SIGTERM or Ctrl-C). People paste their key once; clients get short-lived tokens, and the server gets the key.\n\n" +
			"Every setting can be given by a flag, by an environment variable (--upstream-timeout is PASTEPORT_UPSTREAM_TIMEOUT) or by a\n" +
			"line of a YAML file (upstream-timeout: 1m). A flag goes before a variable, a variable before the file.",
		Example: "  pasteport gateway --dev --upstream http://127.0.0.1:9000/mcp\n" +
			"  pasteport gateway --upstream http://127.0.0.1:9000/mcp --issuer https://mcp.example.com --data /var/lib/pasteport\n" +
			"  pasteport gateway --config /etc/pasteport.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			config.Logger = config.logger(errOut)
			return serveUntilStopped(cmd, *config, out)
		},
	}
	config.addServiceSettings(gateway, config.askForUpstreams, []string{"bus", "bus-file", "demo-token", "demo-token-file"}) // its sessions are its upstream's
	return gateway
}

func (c *Config) askForUpstreams() error {
	if c.isGateway() {
		return nil
	}
	return errors.New("nobody has said which MCP server is behind the gateway: add --upstream http://127.0.0.1:9000/mcp")
}

func (c *Config) refuseUpstreams() error {
	if !c.isGateway() {
		return nil
	}
	return errors.New("upstreams are set, and \"pasteport serve\" is the demo site: start \"pasteport gateway\", or leave them out")
}

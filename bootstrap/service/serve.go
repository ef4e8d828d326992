package service

import (
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/spf13/cobra"
)

func newServe(out, errOut io.Writer) *cobra.Command {
	config := defaultConfig()
	serve := &cobra.Command{
		Use: "serve", Short: "Run the demo site as a service", Args: noArguments,
		Long: "Run the demo site, a small content-management site with Pasteport built in, until it is told to stop (SIGTERM or Ctrl-C).\n\n" +
			"Every setting can be given by a flag, by an environment variable (--access-token-ttl is PASTEPORT_ACCESS_TOKEN_TTL) or by a\n" +
			"line of a YAML file (access-token-ttl: 1h). A flag goes before a variable, a variable before the file.",
		Example: "  pasteport serve --dev\n" +
			"  pasteport serve --config /etc/pasteport.yaml\n" +
			"  pasteport serve --addr 127.0.0.1:9000 --issuer https://cms.example.com --data /var/lib/pasteport",
		RunE: func(cmd *cobra.Command, _ []string) error {
			config.Logger = config.logger(errOut)
			return serveUntilStopped(cmd, *config, out)
		},
	}
	config.addServiceSettings(serve, config.refuseUpstreams, config.gateway().Names())
	return serve
}

func serveUntilStopped(cmd *cobra.Command, config Config, out io.Writer) error {
	listener, err := listen(config.Addr)
	if err != nil {
		return err
	}
	if config.Issuer == "" {
		config.Issuer = config.ownIssuer(listener.Addr())
	}
	limitGarbage(config.Logger)
	service, err := Open(cmd.Context(), config)
	if err != nil {
		_ = listener.Close()
		return err
	}
	if service.NewToken != "" {
		_, _ = fmt.Fprintf(out, "demo token: %s\n", service.NewToken)
	}
	_, _ = fmt.Fprintf(out, "serving %s on %s, %s\n", config.Issuer, listener.Addr(), config.place())
	for _, server := range service.Authz.Resources() {
		_, _ = fmt.Fprintf(out, "next: connect an MCP client to %s\n", server.Resource)
	}
	if admin := service.AdminAddr(); admin != nil {
		_, _ = fmt.Fprintln(out, forOperator(admin))
	}
	return errors.Join(service.Serve(cmd.Context(), listener), service.Close())
}

// forOperator says where the admin listener is, and what it tells this computer there.
func forOperator(addr net.Addr) string {
	bound, ok := addr.(*net.TCPAddr)
	switch {
	case ok && bound.IP.IsUnspecified():
		return fmt.Sprintf("connections, readiness and metrics for you: http://localhost:%d/", bound.Port)
	case ok && !bound.IP.IsLoopback():
		return fmt.Sprintf("readiness and metrics for you: http://%s/readyz and /metrics; connections need an admin-addr on loopback", addr)
	}
	return fmt.Sprintf("connections, readiness and metrics for you: http://%s/", addr)
}

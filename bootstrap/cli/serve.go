package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/internal/memory"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// howToSet ends the description of each command that runs a service.
const howToSet = "Set each setting by a flag, an environment variable (PASTEPORT_ACCESS_TOKEN_TTL for " +
	"--access-token-ttl) or a line of a YAML\n" +
	"file (access-token-ttl: 1h). Flags take precedence over variables, and variables over the file."

func newServe(out, errOut io.Writer) *cobra.Command {
	serve := &cobra.Command{
		Use:   "serve",
		Short: "Run the demo site as a service",
		Long: "Run the demo site, a small content management site with Pasteport built in, until SIGTERM or Ctrl-C. " +
			"It is for trying and\n" +
			"testing; for an MCP server of your own, run \"pasteport gateway\".\n\n" + howToSet,
		Example: "  pasteport serve --dev\n" +
			"  pasteport serve --config /etc/pasteport.yaml\n" +
			"  pasteport serve --addr 127.0.0.1:9000 --issuer https://cms.example.com --data /var/lib/pasteport",
	}
	unused := slices.Concat(service.GatewaySettings(), service.ServerSettings)
	return runsService(serve, unused, service.Config.IsSite, "\"pasteport serve\" runs the demo site: run \"pasteport "+
		"gateway\", or leave upstream out; run \"pasteport server\", or leave resource-servers out", out, errOut)
}

func newGateway(out, errOut io.Writer) *cobra.Command {
	gateway := &cobra.Command{
		Use:   "gateway",
		Short: "Add OAuth to an existing MCP server",
		Long: "Run an OAuth gateway in front of an unmodified MCP server that accepts an API key, until SIGTERM or " +
			"Ctrl-C. People paste\n" +
			"their key once; clients get short-lived tokens, and the server gets the key as bearer token, or as " +
			"--present says.\n\n" + howToSet,
		Example: "  pasteport gateway --dev --upstream http://127.0.0.1:9000/mcp\n" +
			"  pasteport gateway --dev --upstream http://127.0.0.1:9000/mcp --present 'X-Api-Key: {token}'\n" +
			"  pasteport gateway --upstream http://127.0.0.1:9000/mcp --issuer https://mcp.example.com --data " +
			"/var/lib/pasteport\n" +
			"  pasteport gateway --config /etc/pasteport.yaml",
	}
	unused := slices.Concat(service.ServerSettings, service.SiteSettings)
	return runsService(gateway, unused, service.Config.IsGateway,
		"the gateway has no MCP server: add --upstream http://127.0.0.1:9000/mcp", out, errOut)
}

func newServer(out, errOut io.Writer) *cobra.Command {
	server := &cobra.Command{
		Use:   "server",
		Short: "Run the authorization server for MCP servers elsewhere",
		Long: "Run only the authorization server, for MCP servers in any language that stay where they are, until " +
			"SIGTERM or Ctrl-C.\n" +
			"They publish where it is, and ask it about each token (RFC 7662), with a secret for each of them.\n\n" +
			howToSet,
		Example: "  pasteport server --dev --verifier file --token-file tokens --resource-servers " +
			"'http://127.0.0.1:3000/mcp = SECRET'\n" +
			"  pasteport server --config /etc/pasteport.yaml",
	}
	return runsService(server, service.MCPSettings(), service.Config.IsAlone,
		"the MCP servers are missing: name them in resource-servers", out, errOut)
}

// runsService makes the command run a service until it is stopped. The command has flags for all
// but the unused settings. It fails with the mistake if isKind does not accept the settings.
func runsService(command *cobra.Command, unused []string, isKind func(service.Config) bool, mistake string,
	out, errOut io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	table := config.Table()
	table.Flags(command, table.Names(unused...)...)
	command.Args = term.NoArguments
	var plan *service.Plan
	command.PreRunE = func(*cobra.Command, []string) (err error) {
		plan, err = config.Load(table, errOut, func(config service.Config) error {
			if !isKind(config) {
				return errors.New(mistake)
			}
			return nil
		})
		return logged(err, *config, errOut)
	}
	command.RunE = func(*cobra.Command, []string) error {
		return logged(table.Explain(serveUntilStopped(command.Context(), plan, out)), *config, errOut)
	}
	return command
}

func serveUntilStopped(ctx context.Context, plan *service.Plan, out io.Writer) error {
	listener, err := plan.Listen()
	if err != nil {
		return err
	}
	if plan.Issuer == "" {
		plan.Issuer = plan.LocalIssuer(listener.Addr())
	}
	memory.LimitGarbage(plan.Logger)
	config := plan.Config
	line := startLines(out, config)
	plan.UpstreamsChecked = func(all []service.UpstreamStatus) {
		for _, upstream := range all {
			warning := ""
			if upstream.State.Remedy != "" {
				warning = "warning: "
			}
			line("%supstream %s: %s", warning, upstream.Name, upstream.State)
		}
	}
	running, err := plan.Open(ctx)
	if err != nil {
		_ = listener.Close()
		return err
	}
	defer onHangup(running.ReopenAudit)() // also without a file, because SIGHUP ends a process without a handler
	if running.NewToken != "" {
		line("demo token: %s", running.NewToken)
	}
	data := "data in " + config.DataDir
	if config.Database.URL != "" {
		data = "grants in " + config.StoreLocation().String() // which has no password
	}
	line("serving %s on %s, %s", config.Issuer, listener.Addr(), data)
	for _, protected := range running.Authz.Resources() {
		line("next: connect an MCP client to %s", protected.Resource)
		if config.Development {
			for _, client := range localClients(config, protected.Resource.String()) {
				line("  %-13s  %s", client.name, client.command)
			}
		}
	}
	var excluded []string
	for _, client := range knownClients {
		if client.admittedBy(&config) != "yes" {
			excluded = append(excluded, client.name)
		}
	}
	if len(excluded) > 0 {
		line("apps that cannot connect, because of self-registration or allow-clients: %s",
			strings.Join(excluded, ", "))
	}
	if admin := running.AdminAddr(); admin != nil {
		line("%s", adminLine(admin))
	}
	if config.IsSite() {
		line("this is the demo site; for an MCP server of your own, run: pasteport gateway --upstream URL")
	}
	return errors.Join(running.Serve(ctx, listener), running.Close())
}

// onHangup calls reopen for each SIGHUP until stop is called.
func onHangup(reopen func()) (stop func()) {
	hangups, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer close(done)
		for range hangups {
			reopen()
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(hangups)
		<-done
	}
}

// adminLine describes the paths and the address of the admin listener.
func adminLine(addr net.Addr) string {
	bound, ok := addr.(*net.TCPAddr)
	switch {
	case ok && bound.IP.IsUnspecified():
		return fmt.Sprintf("grants, connections, readiness and metrics for you: http://localhost:%d/", bound.Port)
	case ok && !bound.IP.IsLoopback():
		return fmt.Sprintf(
			"readiness and metrics for you: http://%s/readyz and /metrics; connections need an admin-addr on loopback",
			addr)
	}
	return fmt.Sprintf("grants, connections, readiness and metrics for you: http://%s/", addr)
}

// startLines returns a function that prints a line about what a service serves: as text, or with
// log-format json as the message of a JSON line. The lines are results, so log-level hides none.
func startLines(out io.Writer, config service.Config) func(format string, values ...any) {
	if config.LogFormat != service.LogJSON {
		return func(format string, values ...any) { _, _ = fmt.Fprintf(out, format+"\n", values...) }
	}
	logger := slog.New(slog.NewJSONHandler(out, nil))
	return func(format string, values ...any) { logger.Info(fmt.Sprintf(format, values...)) }
}

// loggedError is an error that the log has already. Run does not print it as text among JSON lines.
type loggedError struct{ error }

// Unwrap returns the error, whose kind chooses the exit code.
func (e loggedError) Unwrap() error { return e.error }

// logged logs an error if log lines are JSON.
func logged(err error, config service.Config, errOut io.Writer) error {
	if err == nil || config.LogFormat != service.LogJSON {
		return err
	}
	slog.New(slog.NewJSONHandler(errOut, nil)).Error("the service failed", "error", err.Error())
	return loggedError{err}
}

// localClient is a client on this computer, with the command that connects it.
type localClient struct{ name, command string }

// localClients returns commands for a POSIX shell. The MCP Inspector has no option for a client_id,
// so it registers itself.
func localClients(config service.Config, endpoint string) (clients []localClient) {
	name, id := "local", config.LocalClientID()
	if at, err := url.Parse(endpoint); err == nil { // the whole path, because paths of several servers may end alike
		name += strings.TrimRight(notInNames.ReplaceAllString(at.Path, "-"), "-")
	}
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

// notInNames are the characters that some client refuses in the name of an MCP server.
var notInNames = regexp.MustCompile(`[^A-Za-z0-9]+`)

// shell returns a command line for a POSIX shell.
func shell(words ...string) string {
	for i, word := range words {
		words[i] = term.Quote(word)
	}
	return strings.Join(words, " ")
}

// Package demo is the command "demo": it starts the demo site and a client of the official SDK on
// this computer, shows their exchange in nine steps, and then lets the reader connect the client in
// a browser.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/bootstrap/service/httpserver"
)

// NewCommand returns the command.
func NewCommand(in io.Reader, out io.Writer) *cobra.Command {
	var once, open bool
	given := service.DefaultConfig()
	command := &cobra.Command{
		Use:   "demo",
		Short: "Watch a client connect, then try it in a browser",
		Args:  term.NoArguments,
		Long: "Start the demo site on this computer and watch an MCP client connect to it in nine steps. Then " +
			"connect in a browser yourself,\n" +
			"press Enter to make the client call a tool, and end the connection. With --open, the browser opens by " +
			"itself.\n" +
			"The token to paste comes from --demo-token (PASTEPORT_DEMO_TOKEN) or is generated. Ctrl-C ends the " +
			"demo; you can reuse its folder.",
		Example: "  pasteport demo\n" +
			"  pasteport demo --once --addr 127.0.0.1:0 --data /tmp/demo",
		RunE: func(cmd *cobra.Command, _ []string) error {
			config := service.DefaultConfig() // the settings of a real service must not reach the demo
			config.Addr, config.DataDir, config.EditorToken = given.Addr, given.DataDir, given.EditorToken
			return runDemo(cmd.Context(), *config, &demo{
				terminal: term.New(out),
				in:       in,
				once:     once,
				open:     open,
			})
		},
	}
	given.Table().Flags(command, "addr", "data", "demo-token")
	command.Flags().BoolVar(&once, "once", false, "stop after the nine steps")
	command.Flags().BoolVar(&open, "open", false, "open the consent page in the browser after the nine steps")
	return command
}

// demo is a running demo site and its client.
type demo struct {
	terminal term.Terminal
	logger   *slog.Logger
	service  *service.Service
	client   *demoClient
	issuer   string
	token    string // the site's token to paste
	dir      string // absolute path of the data folder
	in       io.Reader
	connects int
	once     bool // end after the nine steps
	open     bool // open the first address in the browser
}

func runDemo(ctx context.Context, config service.Config, d *demo) error {
	listener, err := service.Config{Addr: config.Addr}.Listen()
	if err != nil {
		return err
	}
	defer listener.Close()
	if address, ok := listener.Addr().(*net.TCPAddr); !ok || !address.IP.IsLoopback() {
		return fmt.Errorf("the demo runs on this computer only, and %s is not local: choose a loopback address with "+
			"--addr, such as %s", config.Addr, service.DefaultAddr)
	}
	client, err := openDemoClient()
	if err != nil {
		return err
	}
	defer client.close()
	log, err := openDemoLog(config.DataDir)
	if err != nil {
		return err
	}
	defer log.Close()
	d.logger, d.client, d.dir = slog.New(slog.NewTextHandler(log, nil)), client, fromRoot(config.DataDir)
	return d.run(ctx, config, listener)
}

// openDemoLog opens the log of the site. It is a file, so that its lines do not interrupt the steps
// on the terminal.
func openDemoLog(dir string) (*os.File, error) {
	if err := service.MakeDataDir(dir); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, "demo.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w: choose a writable folder with --data", err)
	}
	return file, nil
}

func (d *demo) run(ctx context.Context, config service.Config, listener net.Listener) (err error) {
	config.Issuer, config.Development, config.AdminAddr = config.LocalIssuer(listener.Addr()), true, service.AdminOff
	config.RootCAs, config.Logger = d.client.roots, d.logger
	d.issuer = config.Issuer
	if d.service, err = service.Open(ctx, config); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.service.Close()) }()
	if d.token, err = pastedToken(d.service, config.EditorToken); err != nil {
		return err
	}
	d.introduce(config)
	return d.serve(ctx, listener)
}

// pastedToken returns the site's token for this run: the given one, the one of the first start, or
// a new one, because the site keeps only digests.
func pastedToken(s *service.Service, given string) (string, error) {
	switch {
	case given != "":
		return given, nil
	case s.NewToken != "":
		return s.NewToken, nil
	}
	return s.Site.IssueToken("editor", demosite.Editor)
}

func (d *demo) introduce(config service.Config) {
	d.terminal.Printf("Pasteport demo: an MCP client connects to a site, step by step.\n\n"+
		"site        %s\nclient      %s, over TLS that only this process trusts\ndata        %s: site.json, "+
		"oauth.db, demo.log\ndemo token: %s\n\n",
		config.Issuer, d.client.id, d.dir, d.token)
}

func fromRoot(dir string) string {
	if absolute, err := filepath.Abs(dir); err == nil {
		return absolute
	}
	return dir
}

// serve runs the site and the client until the demo ends or one of them fails.
func (d *demo) serve(ctx context.Context, listener net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return d.service.Serve(ctx, listener) })
	parts.Go(func() error {
		return d.serveClient(ctx, d.client.document(), d.client.site)
	})
	parts.Go(func() error {
		return d.serveClient(ctx, d.client.callback(ctx), d.client.home)
	})
	parts.Go(func() error {
		defer stop()
		defer http.DefaultClient.CloseIdleConnections() // an unused connection would delay the drain
		if err := d.walk(ctx); err != nil || d.once {
			return err
		}
		return d.invite(ctx)
	})
	return parts.Wait()
}

func (d *demo) serveClient(ctx context.Context, handler http.Handler, listener net.Listener) error {
	return httpserver.New(handler, httpserver.BoundsFor(httpserver.FewConnections), d.logger).
		ServeAndDrain(ctx, listener)
}

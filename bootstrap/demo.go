package bootstrap

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

	"github.com/pasteport/pasteport/bootstrap/demosite"
)

type demoOptions struct {
	addr, dir string
	once      bool
}

func newDemo(out io.Writer) *cobra.Command {
	var o demoOptions
	command := &cobra.Command{
		Use: "demo", Short: "Watch a client connect, then try it in a browser", Args: noArguments,
		Long: "Start the demo site on this computer and watch a real MCP client connect to it in nine steps; then do the same in a browser.\n" +
			"The token that is pasted is taken from " + tokenVariable + ", or made for you. Ctrl-C ends the demo; its folder can be used again.",
		Example: "  pasteport demo\n" +
			"  pasteport demo --once --addr 127.0.0.1:0 --data demo-data",
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), o, newTerminal(out)) },
	}
	flags := command.Flags()
	flags.StringVar(&o.addr, "addr", defaultAddr, "address to listen on, of this computer only")
	flags.StringVar(&o.dir, "data", defaultDataDir, "folder for the two databases and the log")
	flags.BoolVar(&o.once, "once", false, "stop after the nine steps")
	return command
}

// demo is the demo site with a client beside it.
type demo struct {
	terminal terminal
	logger   *slog.Logger
	service  *Service
	client   *demoClient
	token    string // the site's own, which is pasted
}

func runDemo(ctx context.Context, o demoOptions, t terminal) error {
	listener, err := listen(o.addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	if address, ok := listener.Addr().(*net.TCPAddr); !ok || !address.IP.IsLoopback() {
		return fmt.Errorf("the demo is for this computer only, and %s is not: choose a loopback address with --addr, like %s", o.addr, defaultAddr)
	}
	client, err := openDemoClient()
	if err != nil {
		return err
	}
	defer client.close()
	log, err := openDemoLog(o.dir)
	if err != nil {
		return err
	}
	defer log.Close()
	d := &demo{terminal: t, logger: logTo(log), client: client}
	return d.run(ctx, o, listener)
}

// openDemoLog makes the log of the site, which would only stand between the steps on the terminal.
func openDemoLog(dir string) (*os.File, error) {
	if err := makeDataDir(dir); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, "demo.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w: choose a folder that can be written with --data", err)
	}
	return file, nil
}

func (d *demo) run(ctx context.Context, o demoOptions, listener net.Listener) (err error) {
	config := ServiceConfig{
		Issuer: "http://" + listener.Addr().String(), DataDir: o.dir, EditorToken: os.Getenv(tokenVariable),
		Development: true, RootCAs: d.client.roots, Logger: d.logger,
	}
	if d.service, err = OpenService(ctx, config); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.service.Close()) }()
	if d.token, err = d.service.pastedToken(ctx, config.EditorToken); err != nil {
		return err
	}
	d.introduce(config)
	return d.serve(ctx, listener, o.once)
}

// pastedToken is the site's token for this run: the given one, the one of the first start, or a new one, because the site keeps
// only the digests of earlier ones.
func (s *Service) pastedToken(ctx context.Context, given string) (string, error) {
	switch {
	case given != "":
		return given, nil
	case s.NewToken != "":
		return s.NewToken, nil
	}
	return s.Site.IssueToken(ctx, "editor", demosite.Editor)
}

func (d *demo) introduce(config ServiceConfig) {
	dir := config.DataDir
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	d.terminal.say("Pasteport demo: a site, an MCP client, and what they say to each other.\n\n"+
		"site        %s\nclient      %s, over TLS that only this process trusts\ndata        %s: content.db, oauth.db, demo.log\ndemo token: %s\n\n",
		config.Issuer, d.client.id, dir, d.token)
}

// serve runs the site and the client until the demo is over or one of them fails.
func (d *demo) serve(ctx context.Context, listener net.Listener, once bool) error {
	ctx, stop := context.WithCancel(ctx)
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return d.service.Serve(ctx, listener) })
	parts.Go(func() error { return serveAndDrain(ctx, newHTTPServer(d.client.document(), d.logger), d.client.site) })
	parts.Go(func() error {
		return serveAndDrain(ctx, newHTTPServer(d.client.callback(ctx), d.logger), d.client.home)
	})
	parts.Go(func() error {
		defer stop()
		defer http.DefaultClient.CloseIdleConnections() // one that was never used would hold up the drain
		if err := d.walk(ctx); err != nil || once {
			return err
		}
		return d.invite(ctx)
	})
	return parts.Wait()
}

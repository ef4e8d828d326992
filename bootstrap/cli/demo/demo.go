// Package demo is the command "demo": it starts the demo site and a client of the official SDK on
// this computer, shows their exchange in nine steps, and then lets the reader connect the client in
// a browser.
package demo

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"

	launcher "github.com/cli/browser"
	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest/browser"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest/clientsite"
	"github.com/pasteport/pasteport/bootstrap/service"
)

const clientName = "Pasteport demo client"

// NewCommand returns the command.
func NewCommand(in io.Reader, out io.Writer) *cobra.Command {
	d := &demo{terminal: term.New(out), in: in, answers: make(chan *url.URL, 1)}
	given := service.DefaultConfig()
	command := &cobra.Command{
		Use:   "demo",
		Short: "Watch a client connect, then try it in a browser",
		Args:  term.NoArguments,
		Long: "Start the demo site on this computer and watch an MCP client connect to it in nine steps. Then\n" +
			"connect in a browser yourself, press Enter to make the client call a tool, and end the connection.\n" +
			"The token to paste comes from --demo-token (PASTEPORT_DEMO_TOKEN) or is generated. Ctrl-C ends the\n" +
			"demo; you can reuse its folder.",
		Example: "  pasteport demo\n  pasteport demo --once --addr 127.0.0.1:0 --data /tmp/demo",
		RunE: func(cmd *cobra.Command, _ []string) error {
			config := service.DefaultConfig() // the settings of a real service must not reach the demo
			config.Addr, config.DataDir, config.EditorToken = given.Addr, given.DataDir, given.EditorToken
			return d.run(cmd.Context(), *config)
		},
	}
	given.Table().Flags(command, "addr", "data", "demo-token")
	command.Flags().BoolVar(&d.once, "once", false, "stop after the nine steps")
	command.Flags().BoolVar(&d.open, "open", false, "open the consent page in the browser after the nine steps")
	return command
}

// demo is a running demo site and its client.
type demo struct {
	terminal   term.Terminal
	in         io.Reader
	once, open bool   // end after the nine steps; open the first consent page in the browser
	dir        string // absolute path of the data folder
	service    *service.Service
	issuer     string
	token      string                 // the site's token to paste
	published  *clientsite.Site       // the client's document
	home       *httptest.Server       // where the browser comes back to the client
	invited    atomic.Pointer[string] // the authorization URL while the client waits for the reader, else nil
	answers    chan *url.URL          // the URLs with which the browser came back
}

func (d *demo) run(ctx context.Context, config service.Config) (err error) {
	listener, err := service.Config{Addr: config.Addr}.Listen()
	if err != nil {
		return err
	}
	defer listener.Close()
	if address, ok := listener.Addr().(*net.TCPAddr); !ok || !address.IP.IsLoopback() {
		return fmt.Errorf("the demo runs on this computer only, and %s is not local: choose a loopback address with "+
			"--addr, such as %s", config.Addr, service.DefaultAddr)
	}
	if d.dir, err = filepath.Abs(config.DataDir); err != nil {
		return fmt.Errorf("finding the data folder: %w", err)
	}
	if err := service.MakeDataDir(d.dir); err != nil {
		return err
	}
	// The lines of a log on the terminal would interrupt the steps.
	log, err := os.OpenFile(filepath.Join(d.dir, "demo.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log: %w: choose a writable folder with --data", err)
	}
	defer log.Close()
	d.published = clientsite.Publish(clientName)
	defer d.published.Close()
	d.home = httptest.NewServer(http.HandlerFunc(d.receive))
	defer d.home.Close()
	config.Issuer, config.Development, config.AdminAddr = config.LocalIssuer(listener.Addr()), true, service.AdminOff
	config.RootCAs, config.Logger = d.published.RootCAs(), slog.New(slog.NewTextHandler(log, nil))
	d.issuer = config.Issuer
	if d.service, err = service.Open(ctx, config); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.service.Close()) }()
	if d.token = config.EditorToken; d.token == "" {
		if d.token, err = d.service.Site.IssueToken("editor", demosite.Editor); err != nil {
			return err
		}
	}
	d.terminal.Printf("Pasteport demo: an MCP client connects to a site, step by step.\n\n"+
		"site        %s\nclient      %s, over TLS that only this process trusts\ndata        %s: site.json, "+
		"oauth.db, demo.log\ndemo token: %s\n\n", d.issuer, d.published.ID(), d.dir, d.token)
	ctx, stop := context.WithCancel(ctx)
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return d.service.Serve(ctx, listener) })
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

const answerPage = `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">` +
	`<meta name="color-scheme" content="light dark"><title>Pasteport demo</title><p>%s</p></html>`

// receive serves the reader's browser: it redirects the short address to the authorization URL, and
// passes the URL with which the browser comes back to the client.
func (d *demo) receive(w http.ResponseWriter, r *http.Request) {
	invited := d.invited.Load()
	switch {
	case invited != nil && r.URL.Path == "/start":
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, *invited, http.StatusFound)
	case invited != nil && r.URL.Path == "/callback" && d.invited.CompareAndSwap(invited, nil):
		d.answers <- r.URL
		_, _ = fmt.Fprintf(w, answerPage, "The client has the answer. The terminal shows whether it is connected.")
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(w, answerPage, "The client is not waiting for this page. The terminal says what to do next.")
	}
}

// invite lets the reader connect the same client in a browser, use it and end its connection, as
// often as they like, until ctx ends.
func (d *demo) invite(ctx context.Context) error {
	if _, err := d.service.Authz.EndGrantsOf(ctx, d.token); err != nil {
		return fmt.Errorf("ending the client's first connection: %w", err)
	}
	d.terminal.Printf("The site has ended this connection, so that the next one is yours.\n")
	enter := make(chan bool)
	go func() { // ends with the process, because reading a terminal cannot be interrupted
		defer close(enter)
		for lines := bufio.NewScanner(d.in); lines.Scan(); {
			enter <- true
		}
	}()
	for n := 2; ; n++ {
		asked := false // whether await has shown an address
		session, err := d.connect(ctx, &tour{agent: fmt.Sprint("pasteport-demo/", n), taken: len(steps)},
			func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
				asked = true
				return d.await(ctx, args.URL)
			})
		switch {
		case ctx.Err() != nil:
			return nil
		case !asked:
			return fmt.Errorf("preparing the browser login: %w", err)
		case err != nil:
			d.terminal.Printf("\n%s: %v.\n", d.terminal.Red("Not connected"), err)
		default:
			d.callTools(ctx, session, enter)
			_ = session.Close() // fails when the server refuses the client
		}
	}
}

// await prints the address and waits until a browser comes back from it.
func (d *demo) await(ctx context.Context, address string) (*auth.AuthorizationResult, error) {
	d.invited.Store(&address)
	start := d.home.URL + "/start"
	d.terminal.Printf("\n%s Open this address in a browser on this computer, paste the token and "+
		"approve:\n\n%s\n\ndemo token: %s\n\n"+
		"\"My app runs on another computer\" shows an address to copy instead; pass it to the client with "+
		"curl '…'.\n\nCtrl-C ends the demo.\n", d.terminal.Bold("Your turn."), start, d.token)
	if d.open {
		d.open = false
		launcher.Stdout, launcher.Stderr = io.Discard, io.Discard // whose output would interrupt the text
		_ = launcher.OpenURL(start)                               // the terminal shows the address, too
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case answer := <-d.answers:
		return (&browser.Page{Status: http.StatusSeeOther, Location: answer}).Answer()
	}
}

// callTools calls a tool at each press of Enter, until the client is refused or the input ends.
func (d *demo) callTools(ctx context.Context, session *sdk.ClientSession, enter <-chan bool) {
	path, _ := os.Executable()
	program, dir := term.Quote(cmp.Or(path, "pasteport")), term.Quote(d.dir)
	d.terminal.Printf("\n%s: the client has exchanged its code for tokens.\n\n%s\n\n"+
		"Press Enter to make the client call a tool, as often as you like.\n\n"+
		"Paste the same token here to see and end your connection; the client's next call is then refused:\n"+
		"%s/oauth/connections\n\n"+
		"In another terminal, list the connections and show the newest step by step:\n%s connections --data %s\n"+
		"%s trace --data %s\n\nCtrl-C ends the demo.\n\n", d.terminal.Green("Connected"),
		d.terminal.Bold("What next?"), d.issuer, program, dir, program, dir)
	for {
		select {
		case <-ctx.Done():
			return
		case pressed := <-enter:
			if !pressed {
				return
			}
		}
		found, err := use(ctx, session, "list_articles", nil)
		if err != nil {
			d.terminal.Printf("%s: %v.\nThe client has to connect again.\n", d.terminal.Red("Refused"), err)
			return
		}
		articles, _ := found["articles"].([]any)
		d.terminal.Printf("%s: the client called list_articles and got %s.\n", d.terminal.Green("Answered"),
			term.Count(len(articles), "article"))
	}
}

package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	launcher "github.com/cli/browser"
	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/diagnosis"
	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/domain/oauth"
)

// invite lets the reader connect the same client in a browser, use it and end its connection, as
// often as they like, until ctx ends.
func (d *demo) invite(ctx context.Context) error {
	if _, err := d.service.Authz.EndGrantsOf(ctx, d.token); err != nil {
		return fmt.Errorf("ending the client's first connection: %w", err)
	}
	d.terminal.Printf("The site has ended this connection, so that the next one is yours.\n")
	enter := enterPresses(ctx, d.in)
	for {
		session, err := d.connectInBrowser(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case session != nil:
			d.use(ctx, session, enter)
			_ = session.Close() // fails when the server refuses the client
		}
	}
}

// connectInBrowser returns the session of the reader's client, or nil when the reader or the site
// refused; an error means a fault of the demo.
func (d *demo) connectInBrowser(ctx context.Context) (*sdk.ClientSession, error) {
	var guest *visit
	session, err := d.connect(ctx, http.DefaultTransport,
		func(ctx context.Context, args *auth.AuthorizationArgs) (_ *auth.AuthorizationResult, err error) {
			if guest, err = d.await(ctx, args.URL); err != nil {
				return nil, err
			}
			return resultOf(guest.answer)
		})
	if guest == nil {
		return nil, fmt.Errorf("preparing the browser login: %w", err)
	}
	reached := d.verdictOn(ctx, session, err)
	guest.verdict <- reached
	d.announce(reached)
	if !reached.Connected {
		return nil, nil
	}
	return session, nil
}

// await prints the address and returns the browser that is redirected back.
func (d *demo) await(ctx context.Context, address string) (*visit, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("reading the authorization URL: %w", err)
	}
	d.client.invitation.Store(&address)
	defer d.client.invitation.Store(nil)
	d.terminal.Printf("\n%s Open this address in a browser on this computer, paste the token and "+
		"approve:\n\n%s\n\ndemo token: %s\n\n"+
		"\"My app runs on another computer\" shows an address to copy instead; pass it to the client with "+
		"curl '…'.\n\nCtrl-C ends the demo.\n",
		d.terminal.Bold("Your turn."), d.client.start(), d.token)
	d.openBrowser()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case guest := <-d.client.visits:
			if guest.answer.Get("state") == parsed.Query().Get("state") {
				return &guest, nil
			}
			guest.verdict <- verdict{Title: "Unexpected answer",
				Text: "Its address was used before, or is not the newest."}
		}
	}
}

// openBrowser opens the short address once, if the reader has chosen to.
func (d *demo) openBrowser() {
	if !d.open {
		return
	}
	d.open = false
	launcher.Stdout, launcher.Stderr = io.Discard, io.Discard // the output of the browser would interrupt the steps
	if err := launcher.OpenURL(d.client.start()); err != nil {
		d.terminal.Printf("%s: no browser could be opened (%v). Open the address yourself.\n",
			d.terminal.Red("Failed"), err)
	}
}

// verdict is the outcome that the reader sees.
type verdict struct {
	Connected   bool
	Title, Text string
	Connections string // where a connection can be ended
}

func (d *demo) verdictOn(ctx context.Context, session *sdk.ClientSession, err error) verdict {
	var tools *sdk.ListToolsResult
	if err == nil {
		tools, err = session.ListTools(ctx, nil)
	}
	if err != nil {
		return verdict{Title: "Not connected", Text: err.Error() + "."}
	}
	return verdict{
		Connected:   true,
		Title:       "Connected",
		Connections: d.connectionsPage(),
		Text: fmt.Sprintf("%s has exchanged its code for tokens and sees %s.", clientName,
			term.Count(len(tools.Tools), "tool")),
	}
}

func (d *demo) announce(v verdict) {
	title := d.terminal.Red(v.Title)
	if v.Connected {
		title = d.terminal.Green(v.Title)
	}
	d.terminal.Printf("\n%s: %s\n", title, v.Text)
}

// show answers with a page that looks as those of the site.
func (v verdict) show(w http.ResponseWriter, _ *http.Request) {
	notice := pages.Notice{
		Title: v.Title,
		Paragraphs: []string{
			strings.ToUpper(v.Text[:1]) + v.Text[1:],
			"The terminal shows an address for another try.",
		},
	}
	if v.Connected {
		notice.Paragraphs[1] = "The terminal says what to do next: let the client call a tool, or end this connection."
		notice.Link, notice.LinkText = v.Connections, "See or end this connection"
	}
	site, err := pages.New(clientName, pages.Appearance{}, nil)
	if err == nil {
		err = site.For("en").WriteNotice(w, notice)
	}
	if err != nil {
		http.Error(w, v.Title+": "+v.Text, http.StatusInternalServerError)
	}
}

// enterPresses sends once for each press of Enter; the channel is closed at the end of input.
func enterPresses(ctx context.Context, in io.Reader) <-chan struct{} {
	pressed := make(chan struct{})
	go func() { // ends with the process, because reading a terminal cannot be interrupted
		defer close(pressed)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			select {
			case pressed <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return pressed
}

// use calls a tool at each press of Enter, until the client is refused or the input ends.
func (d *demo) use(ctx context.Context, session *sdk.ClientSession, enter <-chan struct{}) {
	program, dir := term.Quote(thisProgram()), term.Quote(d.dir)
	d.terminal.Printf("\n%s\n\n"+
		"Press Enter to make the client call a tool, as often as you like.\n\n"+
		"Paste the same token here to see and end your connection; the client's next call is then refused:\n%s\n\n"+
		"In another terminal, list the connections and show this one step by step:\n%s connections --data %s\n%s "+
		"trace%s --data %s\n\n"+
		"Ctrl-C ends the demo.\n\n",
		d.terminal.Bold("What next?"), d.connectionsPage(), program, dir, program, d.traceID(ctx), dir)
	for {
		select {
		case <-ctx.Done():
			return
		case _, more := <-enter:
			if !more || !d.callTool(ctx, session) {
				return
			}
		}
	}
}

// traceTime is how long traceID waits for the journal, which writes in the background.
const traceTime = 2 * time.Second

// traceID returns the id of the client's newest connection, after a space, or "": trace shows the
// newest one without an id.
func (d *demo) traceID(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, traceTime)
	defer cancel()
	for {
		found, err := d.service.Authz.Trace(ctx)
		if err != nil {
			return ""
		}
		for _, connection := range found {
			if connection.Agent == d.agent() && connection.State == diagnosis.Connected {
				return " " + oauth.ShortID(connection.ID)
			}
		}
		select {
		case <-ctx.Done():
			return ""
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// callTool reports whether the client can continue.
func (d *demo) callTool(ctx context.Context, session *sdk.ClientSession) bool {
	result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "list_articles"})
	if refused := refusal(""); errors.As(err, &refused) {
		d.terminal.Printf("%s: %v.\nThe client has to connect again.\n", d.terminal.Red("Refused"), refused)
		return false
	}
	if err != nil {
		d.terminal.Printf("%s: %v.\n", d.terminal.Red("Failed"), err)
		return false
	}
	found, _ := result.StructuredContent.(map[string]any)
	articles, _ := found["articles"].([]any)
	d.terminal.Printf("%s: the client called list_articles and got %s.\n", d.terminal.Green("Answered"),
		term.Count(len(articles), "article"))
	return true
}

func (d *demo) connectionsPage() string { return d.issuer + "/oauth/connections" }

// thisProgram returns the path of this program, which works in every folder.
func thisProgram() string {
	path, err := os.Executable()
	if err != nil {
		return "pasteport"
	}
	return path
}

package demo

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/a-h/templ"
	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// invite lets the reader connect the same client in a browser, use it and end its connection, as often as they like, until ctx ends.
func (d *demo) invite(ctx context.Context) error {
	if _, err := d.service.Authz.EndGrantsOf(ctx, d.token); err != nil {
		return fmt.Errorf("ending the client's first connection: %w", err)
	}
	d.terminal.Printf("The site has ended this connection, so that the next one is yours.\n")
	enter := presses(ctx, d.in)
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

// connectInBrowser returns the session of the reader's client, or nil when the reader or the site refused; an error means a fault of the demo.
func (d *demo) connectInBrowser(ctx context.Context) (*sdk.ClientSession, error) {
	var guest *visit
	session, err := d.connect(ctx, http.DefaultTransport, func(ctx context.Context, args *auth.AuthorizationArgs) (_ *auth.AuthorizationResult, err error) {
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
	d.terminal.Printf("\n%s Open this address in a browser on this computer, paste the token and approve:\n\n%s\n\ndemo token: %s\n\nCtrl-C ends the demo.\n",
		d.terminal.Bold("Your turn."), address, d.token)
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case guest := <-d.client.visits:
			if guest.answer.Get("state") == parsed.Query().Get("state") {
				return &guest, nil
			}
			guest.verdict <- verdict{Title: "Unexpected answer", Text: "Its address was used before, or is not the newest."}
		}
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
	return verdict{Connected: true, Title: "Connected", Connections: d.connectionsPage(),
		Text: fmt.Sprintf("%s has exchanged its code for tokens and sees %d tools.", clientName, len(tools.Tools))}
}

func (d *demo) announce(v verdict) {
	title := d.terminal.Red(v.Title)
	if v.Connected {
		title = d.terminal.Green(v.Title)
	}
	d.terminal.Printf("\n%s: %s\n", title, v.Text)
}

func (v verdict) show(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer") // the address holds a code
	templ.Handler(v.page()).ServeHTTP(w, r)
}

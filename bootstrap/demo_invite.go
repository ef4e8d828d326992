package bootstrap

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// invite lets the reader connect the same client in a browser, as often as they like, until ctx ends.
func (d *demo) invite(ctx context.Context) error {
	for {
		var guest *visit
		tools, err := d.connectInBrowser(ctx, func(ctx context.Context, args *auth.AuthorizationArgs) (_ *auth.AuthorizationResult, err error) {
			if guest, err = d.await(ctx, args.URL); err != nil {
				return nil, err
			}
			return resultOf(guest.answer)
		})
		switch {
		case guest != nil:
			reached := verdictOn(tools, err)
			guest.verdict <- reached
			d.announce(reached)
		case ctx.Err() != nil:
			return nil
		default:
			return fmt.Errorf("preparing the browser's turn: %w", err)
		}
	}
}

// connectInBrowser returns how many tools the client sees with its new token.
func (d *demo) connectInBrowser(ctx context.Context, browse auth.AuthorizationCodeFetcher) (int, error) {
	session, err := d.connect(ctx, http.DefaultClient, browse)
	if err != nil {
		return 0, err
	}
	defer session.Close()
	listed, err := session.ListTools(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("listing the tools: %w", err)
	}
	return len(listed.Tools), nil
}

// await shows the address and returns the browser that comes back from it.
func (d *demo) await(ctx context.Context, address string) (*visit, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("reading the authorization URL: %w", err)
	}
	d.terminal.say("\n%s Open this address in a browser on this computer, paste the token and approve:\n\n%s\n\ndemo token: %s\n\nCtrl-C ends the demo.\n",
		d.terminal.bold("Your turn."), address, d.token)
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case guest := <-d.client.visits:
			if guest.answer.Get("state") == parsed.Query().Get("state") {
				return &guest, nil
			}
			guest.verdict <- verdict{Title: "Nobody waits for this answer", Text: "Its address has been used, or is not the newest."}
		}
	}
}

// verdict is what the reader is told in the end.
type verdict struct {
	Connected   bool
	Title, Text string
}

func verdictOn(tools int, err error) verdict {
	if err != nil {
		return verdict{Title: "Not connected", Text: err.Error() + "."}
	}
	return verdict{Connected: true, Title: "Connected", Text: fmt.Sprintf("%s has exchanged its code for tokens and sees %d tools.", clientName, tools)}
}

func (d *demo) announce(v verdict) {
	title := d.terminal.red(v.Title)
	if v.Connected {
		title = d.terminal.green(v.Title)
	}
	d.terminal.say("\n%s: %s\n", title, v.Text)
}

var verdictPage = template.Must(template.New("verdict").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>{{.Title}}</title>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
<p>{{if .Connected}}You can close this page.{{else}}The terminal shows an address for another try.{{end}}</p>
</html>
`))

func (v verdict) show(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer") // the address holds a code
	_ = verdictPage.Execute(w, v)
}

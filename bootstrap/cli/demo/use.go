package demo

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
)

// presses sends once for each press of Enter; the channel is closed at the end of input.
func presses(ctx context.Context, in io.Reader) <-chan struct{} {
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
		"In another terminal, list the connections and show one step by step by its ID:\n%s connections --data %s\n%s trace ID --data %s\n\n"+
		"Ctrl-C ends the demo.\n\n",
		d.terminal.Bold("What next?"), d.connectionsPage(), program, dir, program, dir)
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
	d.terminal.Printf("%s: the client called list_articles and got %d articles.\n", d.terminal.Green("Answered"), len(articles))
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

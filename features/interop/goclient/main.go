// Command goclient runs the client of the official Go SDK. It reads orders from standard input, one
// JSON object after another, and writes the results to standard output; the end of the input ends
// its session.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	var to target
	flag.StringVar(&to.server, "mcp", "", "the `URL` of the server")
	flag.StringVar(&to.client, "client", "",
		"the `URL` of the client's metadata document; without one, the client registers itself")
	flag.StringVar(&to.revision, "revision", "", "the `revision` to use")
	flag.BoolVar(&to.sse, "sse", false, "use HTTP with SSE")
	flag.Parse()
	p := &program{
		target:    to,
		words:     json.NewEncoder(os.Stdout),
		callbacks: make(chan string),
		cancel:    func() {},
	}
	if err := p.obey(context.Background(), os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "goclient:", err)
		os.Exit(1)
	}
}

// order is one line of the input.
type order struct {
	Do        string         `json:"do"`
	Callback  string         `json:"callback"`  // of arrive: where the browser was sent
	Tool      string         `json:"tool"`      // of call
	Arguments map[string]any `json:"arguments"` // of call
}

// word is one line of the output.
type word struct {
	Open  string `json:"open,omitempty"`  // a page for the person
	Heard string `json:"heard,omitempty"` // "progress" or "log"
	Of    any    `json:"of,omitempty"`    // the call that progresses, counted from 1
	Done  any    `json:"done,omitempty"`
	Error string `json:"error,omitempty"`
}

type program struct {
	target    target
	handler   auth.OAuthHandler // nil before the first connection
	session   *mcp.ClientSession
	callbacks chan string
	cancel    context.CancelFunc
	calls     int

	speaking sync.Mutex
	words    *json.Encoder
}

func (p *program) say(w word) {
	p.speaking.Lock()
	defer p.speaking.Unlock()
	if err := p.words.Encode(w); err != nil {
		panic(err) // the output is closed
	}
}

func (p *program) obey(ctx context.Context, in io.Reader) error {
	for orders := json.NewDecoder(in); ; {
		var next order
		switch err := orders.Decode(&next); {
		case errors.Is(err, io.EOF):
			return p.close()
		case err != nil:
			return fmt.Errorf("reading an order: %w", err)
		}
		switch next.Do {
		case "arrive":
			p.callbacks <- next.Callback
		case "cancel":
			p.cancel()
		default:
			p.begin(ctx, next)
		}
	}
}

func (p *program) close() error {
	if p.session == nil {
		return nil
	}
	return p.session.Close()
}

// begin executes an order while the program reads the next.
func (p *program) begin(ctx context.Context, next order) {
	ctx, p.cancel = context.WithCancel(ctx)
	go func() {
		done, err := p.do(ctx, next)
		if err != nil {
			p.say(word{Error: err.Error()})
			return
		}
		p.say(word{Done: done})
	}()
}

func (p *program) do(ctx context.Context, next order) (any, error) {
	switch next.Do {
	case "connect":
		return p.connect(ctx)
	case "list":
		return p.list(ctx)
	case "session":
		return p.session.ID(), nil
	case "tokens":
		return p.tokens(ctx)
	case "log":
		return "everything", p.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "debug"})
	case "call":
		return p.call(ctx, next.Tool, next.Arguments)
	}
	return nil, fmt.Errorf("unknown order %q", next.Do)
}

func (p *program) list(ctx context.Context) (names []string, err error) {
	listed, err := p.session.ListTools(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (p *program) call(ctx context.Context, tool string, arguments map[string]any) (any, error) {
	params := &mcp.CallToolParams{Name: tool, Arguments: arguments}
	p.calls++
	params.SetProgressToken(p.calls)
	result, err := p.session.CallTool(ctx, params)
	if err != nil {
		return nil, err
	}
	return result, nil
}

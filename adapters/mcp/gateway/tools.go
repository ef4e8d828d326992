package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	// listFreshness is how long a list of tools counts. A client that has seen a newer one through
	// this gateway ends it earlier.
	listFreshness = 15 * time.Second
	// programFreshness is that for a program, which lists its tools in a process for that purpose.
	programFreshness = 15 * time.Minute
	listTimeout      = 10 * time.Second
	// programTimeout is that for a program, which npx or uvx may have to install first. A person
	// who does not wait for it finds it installed at the next try; ending npx earlier would leave
	// half of a package, which npx cannot repair.
	programTimeout = 5 * time.Minute
	// callWait is how long a call waits for a list. An approval has a limit of its own.
	callWait     = 45 * time.Second
	maxLists     = 2_000
	maxListBytes = 8 << 20 // of all responses to a listing
)

// toolLists are the lists of tools of an upstream, by grant and person.
type toolLists struct {
	freshness, timeout time.Duration

	mu    sync.Mutex
	lists *lru.Cache[string, *toolList]
}

// toolList is one listing. Its result is complete when done is closed.
type toolList struct {
	began time.Time
	done  chan struct{}
	tools []oauth.Tool
	err   error
}

func newToolLists(freshness, timeout time.Duration) *toolLists {
	lists, _ := lru.New[string, *toolList](maxLists) // fails only for a size below one
	return &toolLists{freshness: freshness, timeout: timeout, lists: lists}
}

// listKey has the person too, because several may try to approve one form.
func listKey(caller oauth.Caller) string { return caller.Grant + "\x00" + caller.Subject }

// current returns the listing of a caller, which several calls share. If it is not fresh, it has to
// be completed.
func (t *toolLists) current(key string, now time.Time) (list *toolList, fresh bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if list, fresh = t.lists.Get(key); fresh && !list.began.After(now) && now.Sub(list.began) < t.freshness {
		return list, true
	}
	list = &toolList{began: now, done: make(chan struct{})}
	t.lists.Add(key, list)
	return list, false
}

// forget makes the next call list the tools again, also while another listing is under way.
func (t *toolLists) forget(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lists.Remove(key)
}

// Tools implements guard.Backend. It asks the upstream as a client of the caller would, at most
// once while a list is fresh.
func (g *Gateway) Tools(ctx context.Context, caller oauth.Caller, host oauth.HostToken) ([]oauth.Tool, error) {
	list, fresh := g.tools.current(listKey(caller), g.options.Now())
	if !fresh {
		go func() {
			defer close(list.done)
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.tools.timeout)
			defer cancel()
			if list.tools, list.err = g.listTools(ctx, caller, host); list.err != nil {
				g.tools.forget(listKey(caller))
			}
		}()
	}
	waiting, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	select {
	case <-list.done:
		return list.tools, list.err
	case <-waiting.Done():
		return nil, waiting.Err()
	}
}

// everyCapability makes a server list also the tools that it offers only to clients that can answer
// its requests. None comes, because no tool is called.
var everyCapability = &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{
	RootsV2:  &sdk.RootCapabilities{ListChanged: true}, //nolint:staticcheck // clients still have roots
	Sampling: &sdk.SamplingCapabilities{},              //nolint:staticcheck // and sampling
	Elicitation: &sdk.ElicitationCapabilities{
		Form: &sdk.FormElicitationCapabilities{},
		URL:  &sdk.URLElicitationCapabilities{},
	},
}}

func (g *Gateway) listTools(ctx context.Context, caller oauth.Caller, host oauth.HostToken) (tools []oauth.Tool,
	err error) {
	to := &forwardingTransport{left: maxListBytes}
	to.forward = func(w http.ResponseWriter, r *http.Request, body []byte) error {
		b, err := message.Read(r.Header, body)
		if err != nil && r.Method == http.MethodPost {
			return err
		}
		return g.upstream.Forward(w, r, b, caller, host)
	}
	defer func() { // errors of the SDK hide those of the transport, and quote the answer of the upstream
		var refused *rpc.Error
		switch failed := to.failure(); {
		case err == nil:
		case failed != nil:
			err = failed
		case errors.As(err, &refused):
			err = fmt.Errorf("listing the tools: the MCP server answered with the JSON-RPC error %d", refused.Code)
		case ctx.Err() == nil:
			err = errors.New("listing the tools: the MCP server answered with something else")
		}
	}()
	client := sdk.NewClient(&sdk.Implementation{Name: "pasteport", Title: "Pasteport"}, everyCapability)
	session, err := client.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint:             g.options.Resource.String(),
		HTTPClient:           &http.Client{Transport: to},
		MaxRetries:           -1,
		DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("connecting to list the tools: %w", err)
	}
	defer func() { go func() { _ = session.Close() }() }() // it waits for the upstream
	if offered := session.InitializeResult(); offered != nil && offered.Capabilities != nil &&
		offered.Capabilities.Tools == nil {
		return nil, nil
	}
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("listing the tools: %w", err)
		}
		described, err := guard.NewTool(tool)
		if err != nil {
			return nil, err
		}
		tools = append(tools, described)
	}
	return tools, nil
}

// RefuseUnlisted implements guard.Backend.
func (g *Gateway) RefuseUnlisted(out *response.Writer, r *http.Request, b message.Body, err error) {
	if r.Context().Err() == nil {
		g.answerError(out, r, b.ID(), fmt.Errorf("listing the tools before a call: %w", err))
	}
}

// observed makes the next call list the tools again if the client can find other tools in the
// response: in that to a list, or on a stream that it opens with GET, which may have responses to
// earlier requests.
func (g *Gateway) observed(w http.ResponseWriter, r *http.Request, b message.Body) http.ResponseWriter {
	if !g.options.BindTools || r.Method == http.MethodPost && !b.Has("tools/list") {
		return w
	}
	return &observedResponse{w, func() { g.tools.forget(listKey(response.IdentityOf(r.Context()).Caller)) }}
}

type observedResponse struct {
	http.ResponseWriter
	before func() // each write
}

// Write implements http.ResponseWriter.
func (o *observedResponse) Write(p []byte) (int, error) {
	o.before()
	return o.ResponseWriter.Write(p)
}

// Unwrap is called by http.ResponseController.
func (o *observedResponse) Unwrap() http.ResponseWriter { return o.ResponseWriter }

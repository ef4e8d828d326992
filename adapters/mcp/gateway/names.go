package gateway

import (
	"fmt"
	"net/http"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pasteport/pasteport/adapters/mcp/gateway/filter"
	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/stream"
	"github.com/pasteport/pasteport/domain/access"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/toolset"
)

// ruleNames is the rule of a refusal by a policy, in the trace and the audit.
const ruleNames = "U26"

// refuseNames returns the refusal of a body to the upstream that names what the caller may not
// use, nil for any other message.
func (g *Gateway) refuseNames(out *stream.Writer, r *http.Request, b message.Body) *message.Refusal {
	code := int64(-32002) // for an unknown resource before message.FirstStateless
	if r.Header.Get(message.VersionHeader) >= message.FirstStateless {
		code = rpc.CodeInvalidParams
	}
	for _, tool := range b.Names.Tools {
		// The upstream could take an unusual name for another one.
		if _, ok := access.FoldName(tool); !ok && g.hasToolScopes {
			return message.RefuseNames(b, ruleNames, rpc.CodeInvalidParams, fmt.Sprintf("unknown tool %q", tool))
		}
	}
	unknown := g.FindUnknown(out.Identity().Caller, b.Names, code)
	if unknown == nil {
		return nil
	}
	g.options.Logger.InfoContext(r.Context(), "refused a message that names what its caller may not use",
		"rule", ruleNames)
	return message.RefuseNames(b, ruleNames, unknown.Code, unknown.Message)
}

// limit returns a policy that permits only names that the upstream cannot take for others.
func limit(allowed guard.Policy, fold func(name string) (string, bool)) guard.Policy {
	if allowed == nil {
		return nil
	}
	return func(caller oauth.Caller, name string) bool {
		_, ok := fold(name)
		return ok && allowed(caller, name)
	}
}

// unfiltered is the text for a client whose response cannot be read.
const unfiltered = "The answer of the MCP server cannot be read, so it is not passed on"

// filtered calls deliver with a writer that filters the response of the upstream.
func (g *Gateway) filtered(w http.ResponseWriter, r *http.Request, b message.Body,
	deliver func(http.ResponseWriter) error) error {
	ctx, caller := r.Context(), stream.IdentityOf(r.Context()).Caller
	memory := g.options.Bodies.Reserve(caller.Subject)
	defer memory.Release()
	id := b.ID()
	report := func(reason error) {
		g.options.Logger.WarnContext(ctx, "cannot filter a response of the MCP server", "rule", "U27", "error", reason)
	}
	of := func(allowed guard.Policy) func(string) bool {
		if allowed == nil {
			return nil
		}
		return func(name string) bool { return allowed(caller, name) }
	}
	o := &g.options
	lists := filter.Lists{Tools: of(o.Tools), Prompts: of(o.Prompts), Resources: of(o.Resources)}
	if record := o.RecordTools; record != nil && !caller.IsDirect() { // who has no grant
		request := b.Only()
		lists.IsFirstPage = request.Method == "tools/list" && !message.IsPresent(request.Params.Get("cursor"))
		lists.Record = func(list toolset.List) (toolset.Pins, error) { return record(ctx, caller.Grant, list) }
	}
	out := &filter.Writer{
		To:      w,
		Lists:   lists,
		Reserve: memory.Extend,
		Release: memory.Release,
		Refuse: func(w http.ResponseWriter, status int, reason error) {
			report(reason)
			attempt.From(ctx).Refuse(oauth.Refuse(oauth.TemporarilyUnavailable, "U27", unfiltered))
			rpcFailure(w, status, id, unfiltered)
		},
		Failure: func(reason error) []byte {
			report(reason)
			if id.IsZero() {
				return nil
			}
			return message.ErrorFor(id, message.CodeUnavailable, unfiltered).Encode()
		},
	}
	if err := deliver(out); err != nil {
		out.Drop()
		return err
	}
	out.Finish()
	return nil
}

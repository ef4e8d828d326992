package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

// CheckTools compares the tools that a body names with those of the caller's consent, unless
// tools are not bound. It returns the errors of oauth.ToolDigests.Check with the name of the tool,
// and any other error if the backend cannot list its tools.
func (g *Guard) CheckTools(to Backend, r *http.Request, b message.Body) (tool string, err error) {
	identity := response.IdentityOf(r.Context())
	if !g.options.BindTools || len(b.Names.Tools) == 0 || identity.Caller.IsDirect() {
		return "", nil
	}
	listed, err := to.Tools(r.Context(), identity.Caller, identity.Host)
	if err != nil {
		return "", err
	}
	listed = g.access.VisibleTools(identity.Caller, listed)
	for _, tool := range b.Names.Tools {
		if err := identity.Caller.Tools.Check(tool, listed); err != nil {
			return tool, err
		}
	}
	return "", nil
}

// RefuseChanged answers a call of a tool that is not as it was at the consent. The challenge names
// the scopes of the call, so that the next consent suffices for it.
func (g *Guard) RefuseChanged(w http.ResponseWriter, r *http.Request, b message.Body) {
	caller := response.IdentityOf(r.Context()).Caller
	g.refuseCaller(w, r, changedTool(g.access.withDefaults(
		g.access.neededScopes(caller, b.Names.Tools, g.access.scopesWith(b.Arguments())))))
}

// refuseCaller answers a caller whose consent does not suffice.
func (g *Guard) refuseCaller(w http.ResponseWriter, r *http.Request, refused refusal) {
	caller := response.IdentityOf(r.Context()).Caller
	g.options.Logger.InfoContext(r.Context(), "refused a request", "grant", caller.Grant,
		"client", g.audit.label(caller.Client), "reason", refused.description, "rule", refused.rule,
		"needed", refused.scope.String())
	traceRefusal(r.Context(), refused)
	g.challenge.refuse(w, refused)
}

// admitTools answers a body that CheckTools refuses. A tool that is not listed is an unknown
// one, because another consent would not help.
func (g *Guard) admitTools(to Backend, out *response.Writer, r *http.Request, b *message.Body) (admitted bool) {
	tool, err := g.CheckTools(to, r, *b)
	kind, _ := oauth.KindOf(err)
	switch {
	case err == nil:
		return true
	case kind == oauth.InsufficientScope:
		g.RefuseChanged(out.ResponseWriter, r, *b)
		return false
	case !errors.Is(err, oauth.ErrUnlistedTool):
		to.RefuseUnlisted(out, r, *b, err)
		g.answerEnded(out)
		return false
	}
	b.Refused = message.RefuseNames(*b, ruleOfChange, rpc.CodeInvalidParams, fmt.Sprintf("unknown tool %q", tool))
	b.Refused.Trace(connection.From(r.Context()))
	if len(b.Refused.Answers) > 0 {
		return true
	}
	b.Refused.Write(out)
	return false
}

// VisibleTools returns the tools that the caller may see.
func (a Access) VisibleTools(caller oauth.Caller, all []oauth.Tool) []oauth.Tool {
	return slices.DeleteFunc(slices.Clone(all), func(tool oauth.Tool) bool {
		return !a.Tools.Permits(caller, tool.Name)
	})
}

// NewTool returns a tool of the SDK with all that clients and people rely on, which are its texts,
// schemas and hints.
func NewTool(of *sdk.Tool) (oauth.Tool, error) {
	hints := sdk.ToolAnnotations{}
	if of.Annotations != nil {
		hints = *of.Annotations
	}
	// The hints have no names, because the SDK may leave out those that are false.
	definition, err := json.Marshal([]any{of.Name, of.Title, of.Description, of.InputSchema, of.OutputSchema,
		hints.Title, hints.ReadOnlyHint, hints.DestructiveHint, hints.IdempotentHint, hints.OpenWorldHint})
	if err != nil {
		return oauth.Tool{}, fmt.Errorf("encoding the tool %q: %w", of.Name, err)
	}
	canonical := message.Canonical(definition)
	if canonical == nil {
		return oauth.Tool{}, fmt.Errorf("encoding the tool %q: its schemas are nested too deeply", of.Name)
	}
	return oauth.NewTool(of.Name, of.Description, canonical), nil
}

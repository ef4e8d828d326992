package guard

import (
	"context"
	"net/http"
	"slices"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/oauth"
)

// refuseCaller answers a caller whose consent does not suffice.
func (g *Guard) refuseCaller(w http.ResponseWriter, r *http.Request, refused refusal) {
	caller := response.IdentityOf(r.Context()).Caller
	g.options.Logger.InfoContext(r.Context(), "refused a request", "grant", caller.Grant,
		"client", g.audit.label(caller.Client), "reason", refused.description, "rule", refused.rule,
		"needed", refused.scope.String())
	traceRefusal(r.Context(), refused)
	g.challenge.refuse(w, refused)
}

// refuseChanged answers a body that names a tool which is not as it was in the first list of the
// caller. The challenge names the scopes of the call, so that the next consent suffices for it.
func (g *Guard) refuseChanged(w http.ResponseWriter, r *http.Request, b message.Body) (refused bool) {
	caller := response.IdentityOf(r.Context()).Caller
	if g.options.RecordTools == nil || len(b.Names.Tools) == 0 {
		return false
	}
	permits := caller.Tools.Permits()
	if !slices.ContainsFunc(b.Names.Tools, func(tool string) bool { return !permits(tool) }) {
		return false
	}
	g.refuseCaller(w, r, changedTool(g.access.withDefaults(
		g.access.neededScopes(caller, b.Names.Tools, g.access.scopesWith(b.Arguments())))))
	return true
}

// RecordTools records a list of tools that a client of a grant gets, and returns which of them it
// may see.
type RecordTools func(ctx context.Context, grant string, list oauth.ToolList) (oauth.ToolPins, error)

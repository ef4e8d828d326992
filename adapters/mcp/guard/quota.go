package guard

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

// takeCalls counts the calls of a message, and returns how long the client has to wait if they are
// too many. A message that names a tool without a call counts as one, because an upstream may call
// the tool.
func (g *Guard) takeCalls(caller oauth.Caller, m jsonrpc.Message) (wait time.Duration) {
	calls, limit := max(m.Calls, min(len(m.Tools), 1)), g.options.Limits.CallsPerMinute
	if g.options.Calls == nil || calls == 0 || limit == 0 {
		return 0
	}
	person := g.options.Resource.String() + "\x00" + caller.Subject
	return g.options.Calls.Take(oauth.CallQuota{Key: person, Calls: calls, PerMinute: limit}, g.options.Now())
}

// refuseCalls answers a message with too many calls.
func (g *Guard) refuseCalls(out *response.Writer, r *http.Request, m jsonrpc.Message, wait time.Duration) {
	g.options.Limited.Observe(oauth.LimitCalls, oauth.LimitRefused)
	connection.From(r.Context()).Refuse(oauth.RefuseFor(wait, oauth.TooManyCalls, "G21",
		"the person has made too many calls of tools in this minute"))
	seconds := refuseFor(wait, out)
	jsonrpc.WriteErrorFor(out, http.StatusTooManyRequests, m.ID, jsonrpc.CodeRefused,
		fmt.Sprintf("Too Many Requests: there were too many calls of tools; try again in %d s (rule G21)", seconds))
}

// refuseFor sets the headers of a 429, and returns the wait in seconds.
func refuseFor(wait time.Duration, w http.ResponseWriter) (seconds int) {
	seconds = int(math.Ceil(wait.Seconds()))
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	w.Header().Set("Cache-Control", "no-store")
	return seconds
}

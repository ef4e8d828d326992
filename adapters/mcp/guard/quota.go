package guard

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

// takeCalls counts the calls of a body, and returns how long the client has to wait if they are
// too many.
func (g *Guard) takeCalls(caller oauth.Caller, b message.Body) (wait time.Duration) {
	calls, limit := b.Calls(), g.options.Limits.CallsPerMinute
	if g.options.Calls == nil || calls == 0 || limit == 0 {
		return 0
	}
	person := g.options.Resource.String() + "\x00" + caller.Subject
	return g.options.Calls.Take(g.options.Now(), oauth.Rate{Of: person, Events: calls, PerMinute: limit})
}

// refuseCalls answers a body with too many calls.
func (g *Guard) refuseCalls(out *response.Writer, r *http.Request, b message.Body, wait time.Duration) {
	g.options.Limited.Observe(oauth.LimitCalls, oauth.LimitRefused)
	connection.From(r.Context()).Refuse(oauth.RefuseFor(wait, oauth.TooManyCalls, "G21",
		"the person has made too many calls of tools in this minute"))
	seconds := refuseFor(wait, out)
	message.WriteErrorFor(out, http.StatusTooManyRequests, b.ID(), message.CodeRefused,
		fmt.Sprintf("Too Many Requests: there were too many calls of tools; try again in %d s (rule G21)", seconds))
}

// refuseFor sets the headers of a 429, and returns the wait in seconds.
func refuseFor(wait time.Duration, w http.ResponseWriter) (seconds int) {
	seconds = int(math.Ceil(wait.Seconds()))
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	w.Header().Set("Cache-Control", "no-store")
	return seconds
}

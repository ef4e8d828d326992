package replica

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
)

// Forward lets the replica that owns a session answer a request. The caller has been authorized for the session before (R2). It returns an
// error when nothing was written: oauth.ErrNotFound when the owner has gone.
func (f *Forwarder) Forward(w http.ResponseWriter, r *http.Request, owner string, call Call) error {
	c := f.begin(r.Context(), &forwardedCall{id: rand.Text(), peer: owner, out: w, body: call.Body, ended: make(chan struct{})})
	defer f.end(c)
	err := f.request(c, request{
		Endpoint: call.Endpoint, Method: r.Method, Session: call.Session, Header: r.Header, Length: len(call.Body), Caller: callerFrom(&call.Caller),
	})
	if err == nil {
		select {
		case <-c.ended:
		case <-c.ctx.Done():
			err = context.Cause(c.ctx)
		}
	}
	begun := c.close()
	if err == nil {
		return nil
	}
	go f.cancel(c)
	switch {
	case begun, r.Context().Err() != nil: // the response cannot be completed, or the client has gone
	case errors.Is(err, errPanic):
		jsonrpc.WriteError(w, http.StatusInternalServerError, "Internal Server Error")
	case errors.Is(err, errTooLarge):
		jsonrpc.WriteError(w, http.StatusRequestHeaderFieldsTooLarge, "Request Header Fields Too Large")
	default:
		return err
	}
	return nil
}

func (f *Forwarder) request(c *forwardedCall, what request) error {
	answer, err := f.ask(c.ctx, askLimit, c.peer, frame{
		Kind: kindRequest, Call: c.id, Request: &what, payload: c.body[:min(len(c.body), chunk)],
	})
	switch {
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx) // watch may have found it earlier
	case err != nil:
		return f.whyLost(c.ctx, c.peer, err)
	case answer.Kind != kindDone:
		return fmt.Errorf("another replica has refused a request: %s", answer.Kind)
	}
	return nil
}

// cancel ends a call in the other replica. It retries, because a replica that was silent may come back and go on with the call.
func (f *Forwarder) cancel(c *forwardedCall) {
	ctx, cancel := context.WithTimeout(context.Background(), cancelLimit)
	defer cancel()
	for ctx.Err() == nil {
		_, err := f.ask(ctx, askLimit, c.peer, frame{Kind: kindCancel, Call: c.id})
		if err == nil || isGone(err) {
			return
		}
		pause(ctx)
	}
}

// ForwardedHeaders are the headers of a request that another replica gets: those of MCP, and those that describe where the request comes
// from. No token is among them (R3). A tool sees no other headers in any replica, so that it does not depend on where a request arrives.
func ForwardedHeaders(header http.Header) http.Header {
	forwarded := http.Header{}
	for name, values := range header {
		if strings.HasPrefix(name, "Mcp-") || slices.Contains([]string{
			"Accept", "Accept-Language", "Content-Type", "Last-Event-Id", "Traceparent", "Tracestate", "User-Agent", "X-Request-Id",
		}, name) {
			forwarded[name] = values
		}
	}
	return forwarded
}

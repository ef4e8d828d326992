package replica

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
)

// Forward forwards a request to the replica that owns its session, and writes the response. The
// caller must be authorized for the session. It returns an error only if it has written nothing:
// oauth.ErrNotFound if the owner has gone.
func (f *Forwarder) Forward(w http.ResponseWriter, r *http.Request, owner string, call Call) error {
	c := f.begin(r.Context(), &forwardedCall{
		id:    rand.Text(),
		peer:  owner,
		out:   w,
		body:  call.Body,
		ended: make(chan struct{}),
	})
	defer f.end(c)
	err := f.request(c, request{
		Endpoint: call.Endpoint,
		Method:   r.Method,
		Session:  call.Session,
		Header:   r.Header,
		Length:   len(call.Body),
		Caller:   callerFrom(&call.Caller),
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

func (f *Forwarder) request(c *forwardedCall, req request) error {
	answer, err := f.ask(c.ctx, askTimeout, c.peer, frame{
		Kind:    kindRequest,
		Call:    c.id,
		Request: &req,
		payload: c.body[:min(len(c.body), chunkSize)],
	})
	switch {
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx) // monitor may have detected a loss
	case err != nil:
		return f.lossError(c.ctx, c.peer, err)
	case answer.Kind != kindDone:
		return fmt.Errorf("another replica refused a request: %s", answer.Kind)
	}
	return nil
}

// cancel ends a call in the other replica. It retries, because a silent replica may resume and
// continue the call.
func (f *Forwarder) cancel(c *forwardedCall) {
	ctx, cancel := context.WithTimeout(context.Background(), cancelTimeout)
	defer cancel()
	for ctx.Err() == nil {
		_, err := f.ask(ctx, askTimeout, c.peer, frame{Kind: kindCancel, Call: c.id})
		if err == nil || isGone(err) {
			return
		}
		waitRetry(ctx)
	}
}

// ForwardedHeaders returns the headers that are forwarded: those of MCP and a fixed list, without
// tokens. The owner of a session removes all others from its own requests too, so that tools do not
// depend on the replica that a request reaches.
func ForwardedHeaders(header http.Header) http.Header {
	forwarded := http.Header{}
	for name, values := range header {
		if strings.HasPrefix(name, "Mcp-") || slices.Contains([]string{
			"Accept", "Accept-Language", "Content-Type", "Last-Event-Id", "Traceparent", "Tracestate", "User-Agent",
			"X-Request-Id",
		}, name) {
			forwarded[name] = values
		}
	}
	return forwarded
}

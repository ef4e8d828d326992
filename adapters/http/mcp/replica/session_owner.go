package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"github.com/pasteport/pasteport/adapters/http/mcp/response"
)

// accept begins a call that another replica forwards, once.
func (f *Forwarder) accept(got frame) kind {
	if got.Request == nil || !f.seen.first(got.Call, f.Now()) {
		return kindGone
	}
	c := f.begin(context.Background(), &forwardedCall{id: got.Call, peer: got.From})
	go f.answer(c, *got.Request, got.payload)
	return kindDone
}

// answer runs a call, and cancels it in the other replica when there can be no response.
func (f *Forwarder) answer(c *forwardedCall, what request, begun []byte) {
	defer f.end(c)
	if err := f.serve(c, what, begun); err != nil && !errors.Is(err, errCancelled) {
		f.Logger.Warn("cannot answer a request of another replica", "error", err)
		go f.cancel(c)
	}
}

// serve runs the handler that serves the clients of this replica, as the caller whom the other replica has authenticated.
func (f *Forwarder) serve(c *forwardedCall, what request, begun []byte) (err error) {
	out := &remoteResponse{forwarder: f, call: c, header: http.Header{}}
	reserved := f.Bodies.Reserve(what.Caller.Subject)
	if reserved.Extend(int64(what.Length)) != nil {
		response.Unavailable(out, response.TooManyBodies)
		return out.end(nil)
	}
	defer reserved.Release()
	body, err := f.fetch(c, what.Length, begun)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(c.ctx, what.Method, f.Resource.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("reading a request: %w", err)
	}
	maps.Copy(r.Header, what.Header)
	defer func() { err = out.end(recover()) }()
	f.Serve(out, r, Call{Endpoint: what.Endpoint, Session: what.Session, Caller: what.Caller.restore(), Body: body})
	return nil
}

// fetch gets the part of a body that did not fit into the first message.
func (f *Forwarder) fetch(c *forwardedCall, length int, body []byte) ([]byte, error) {
	if int64(length) > f.MaxBody {
		return nil, fmt.Errorf("a body of %d bytes is too large", length)
	}
	for len(body) < length {
		next, err := f.ask(c.ctx, askLimit, c.peer, frame{Kind: kindBody, Call: c.id, Offset: len(body)})
		if err != nil {
			return nil, fmt.Errorf("fetching a body: %w", err)
		}
		if next.Kind != kindDone || len(next.payload) == 0 {
			return nil, errors.New("fetching a body: the other replica has ended the call")
		}
		body = append(body, next.payload...)
	}
	return body, nil
}

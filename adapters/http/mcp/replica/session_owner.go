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

// accept begins a forwarded call, unless its message is a replay.
func (f *Forwarder) accept(got frame) kind {
	if got.Request == nil || !f.seen.first(got.Call, f.Now()) {
		return kindGone
	}
	c := f.begin(context.Background(), &forwardedCall{id: got.Call, peer: got.From})
	go f.answer(c, *got.Request, got.payload)
	return kindDone
}

// answer serves a call, and cancels it in the other replica if that fails.
func (f *Forwarder) answer(c *forwardedCall, req request, firstChunk []byte) {
	defer f.end(c)
	if err := f.serve(c, req, firstChunk); err != nil && !errors.Is(err, errCancelled) {
		f.Logger.Warn("cannot answer a request of another replica", "error", err)
		go f.cancel(c)
	}
}

// serve calls Options.Serve with the caller that the other replica has authenticated.
func (f *Forwarder) serve(c *forwardedCall, req request, firstChunk []byte) (err error) {
	out := &remoteResponse{forwarder: f, call: c, header: http.Header{}}
	reserved := f.Bodies.Reserve(req.Caller.Subject)
	if reserved.Extend(int64(req.Length)) != nil {
		response.Unavailable(out, response.TooManyBodies)
		return out.end(nil)
	}
	defer reserved.Release()
	body, err := f.fetchBody(c, req.Length, firstChunk)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(c.ctx, req.Method, f.Resource.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("reading a request: %w", err)
	}
	maps.Copy(r.Header, req.Header)
	defer func() { err = out.end(recover()) }()
	f.Serve(out, r, Call{Endpoint: req.Endpoint, Session: req.Session, Caller: req.Caller.restore(), Body: body})
	return nil
}

// fetchBody requests the chunks of a body after the first.
func (f *Forwarder) fetchBody(c *forwardedCall, length int, body []byte) ([]byte, error) {
	if int64(length) > f.MaxBody {
		return nil, fmt.Errorf("a body of %d bytes is too large", length)
	}
	for len(body) < length {
		next, err := f.ask(c.ctx, askTimeout, c.peer, frame{Kind: kindBody, Call: c.id, Offset: len(body)})
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

package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/pasteport/pasteport/adapters/mcp/response"
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
	f.Serve(out, r, Call{
		Endpoint: req.Endpoint,
		Session:  req.Session,
		Caller:   req.Caller.restore(),
		Body:     body,
	})
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

const (
	// goneAfter is the silence after which the sessions of a replica count as lost. It is longer
	// than a pause of a process or machine.
	goneAfter = 10 * time.Second
	// silenceMemory is the time after which a silence that was not observed again is forgotten.
	silenceMemory = 10 * time.Minute
)

// unreachablePeers holds the replicas that do not answer although the bus works.
type unreachablePeers struct {
	mu    sync.Mutex
	peers map[string]silence
}

// silence has the times of the first and the last failed message.
type silence struct{ first, last time.Time }

// record records that a replica has not answered, and returns how long it has been silent.
func (u *unreachablePeers) record(peer string, now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.peers, func(_ string, s silence) bool { return now.Sub(s.last) > silenceMemory })
	if u.peers == nil {
		u.peers = map[string]silence{}
	}
	s, found := u.peers[peer]
	if !found {
		s.first = now
	}
	s.last = now
	u.peers[peer] = s
	return now.Sub(s.first)
}

// forget removes a replica that has answered.
func (u *unreachablePeers) forget(peer string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.peers, peer)
}

package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"sync"

	"github.com/pasteport/pasteport/adapters/http/mcp/response"
)

// accept takes a request that another replica was asked, once.
func (t *tunnel) accept(f frame) kind {
	if f.Request == nil || !t.met.first(f.Exchange, t.now()) {
		return kindGone
	}
	e := t.begin(context.Background(), &exchange{id: f.Exchange, with: f.From})
	go t.answer(e, *f.Request, f.payload)
	return kindDone
}

// answer tells the other replica also when there can be no answer, so that nobody waits for it.
func (t *tunnel) answer(e *exchange, what request, begun []byte) {
	defer t.end(e)
	if err := t.respond(e, what, begun); err != nil && !errors.Is(err, errGivenUp) {
		t.server.options.Logger.Warn("cannot answer a request of another replica", "error", err)
		go t.giveUp(e)
	}
}

// respond runs the handler that this replica's own clients reach, as the caller whom the other replica knows.
func (t *tunnel) respond(e *exchange, what request, begun []byte) (err error) {
	out := &remoteAnswer{tunnel: t, exchange: e, header: http.Header{}}
	reserved := t.server.options.Bodies.Reserve(what.Caller.Subject)
	if reserved.Extend(int64(what.Length)) != nil {
		unavailable(out, tooManyBodies)
		return out.end(nil)
	}
	defer reserved.Release()
	body, err := t.fetch(e, what.Length, begun)
	if err != nil {
		return err
	}
	ctx := response.WithIdentity(e.ctx, &response.Identity{Sender: response.Sender{Caller: what.Caller.restore()}, Resource: t.server.options.Resource})
	r, err := http.NewRequestWithContext(ctx, what.Method, t.server.options.Resource.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("reading a request: %w", err)
	}
	maps.Copy(r.Header, what.Header)
	defer func() { err = out.end(recover()) }()
	t.server.serveHeld(out, r, what.Endpoint, what.Session, body)
	return nil
}

// serveHeld answers a request in a session of this replica.
func (s *Server) serveHeld(w http.ResponseWriter, r *http.Request, at endpoint, session string, body []byte) {
	if s.refuseEvicted(w, r, session) {
		return
	}
	if at == endpointMessage {
		s.handOver(w, r, session, body)
		return
	}
	s.open.UseSession(session, response.IdentityOf(r.Context()).Caller.Grant)
	r.Header.Set(sessionHeader, session)
	s.sessions.ServeHTTP(w, r)
}

// fetch gets what did not fit into the first message.
func (t *tunnel) fetch(e *exchange, length int, body []byte) ([]byte, error) {
	if int64(length) > t.server.options.MaxBody {
		return nil, fmt.Errorf("a body of %d bytes is too large", length)
	}
	for len(body) < length {
		next, err := t.askWithin(e.ctx, askLimit, e.with, frame{Kind: kindBody, Exchange: e.id, Offset: len(body)})
		if err != nil {
			return nil, fmt.Errorf("fetching a body: %w", err)
		}
		if next.Kind != kindDone || len(next.payload) == 0 {
			return nil, errors.New("fetching a body: nobody waits for the answer")
		}
		body = append(body, next.payload...)
	}
	return body, nil
}

// remoteAnswer is the ResponseWriter of a request that another replica was asked. It sends what was written when it is flushed, when
// there is enough for a message, and at the end, and each time waits until it has arrived.
type remoteAnswer struct {
	tunnel   *tunnel
	exchange *exchange

	mu     sync.Mutex
	header http.Header
	status int
	sent   int // parts
	rest   []byte
	ended  bool
}

// Header is what goes with the first part.
func (a *remoteAnswer) Header() http.Header { return a.header }

// WriteHeader begins the answer.
func (a *remoteAnswer) WriteHeader(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status == 0 {
		a.status = status
	}
}

// Write fails once the answer has ended, or whoever waits for it has gone.
func (a *remoteAnswer) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := context.Cause(a.exchange.ctx); err != nil {
		return 0, fmt.Errorf("writing to another replica: %w", err)
	}
	if a.ended {
		return 0, http.ErrHandlerTimeout
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	a.rest = append(a.rest, p...)
	for len(a.rest) >= chunk {
		if err := a.send(a.rest[:chunk], part{}); err != nil {
			return 0, err
		}
		a.rest = a.rest[chunk:]
	}
	return len(p), nil
}

// FlushError is what http.ResponseController calls.
func (a *remoteAnswer) FlushError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || len(a.rest) == 0 && a.sent > 0 {
		return nil
	}
	err := a.send(a.rest, part{})
	a.rest = nil
	return err
}

// end sends what is left. A panic ends the answer, as it would in an HTTP server, and not the process.
func (a *remoteAnswer) end(panicked any) error {
	if panicked != nil {
		a.tunnel.server.options.Logger.Error("panic while answering a request of another replica", "panic", panicked, "stack", string(debug.Stack()))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended = true; panicked != nil {
		a.rest = nil
	}
	return a.send(a.rest, part{Last: true, Failed: panicked != nil})
}

// send repeats a part until it has arrived, nobody waits for it, or the other replica is lost.
func (a *remoteAnswer) send(payload []byte, p part) error {
	e := a.exchange
	if p.Number = a.sent; p.Number == 0 {
		p.Status, p.Header = a.status, a.header
	}
	for e.ctx.Err() == nil {
		answer, err := a.tunnel.askWithin(e.ctx, takeLimit, e.with, frame{Kind: kindPart, Exchange: e.id, Part: &p, payload: payload})
		switch {
		case err == nil && answer.Kind == kindDone:
			a.sent++
			return nil
		case err == nil:
			e.cancel(errGivenUp)
		case isGone(err), errors.Is(err, errTooLarge):
			e.cancel(err)
		default:
			rest(e.ctx)
		}
	}
	return fmt.Errorf("answering another replica: %w", context.Cause(e.ctx))
}

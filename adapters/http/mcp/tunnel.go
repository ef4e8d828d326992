package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

const (
	// chunk is how much of a body or of an answer is in one message.
	chunk = 256 << 10
	// askLimit is how long a replica may take to say that it has got a message.
	askLimit = 2 * time.Second
	// takeLimit is how long it may take to hand a part of an answer to its client, until the part is sent again.
	takeLimit = 5 * time.Second
	// beatEvery and silenceLimit let what is under way with a replica that falls silent end within three seconds.
	beatEvery    = time.Second
	silenceLimit = 2500 * time.Millisecond
	// tellLimit is how long a replica that may come back is told what it has missed.
	tellLimit = 30 * time.Second
	// pause is between two attempts to say something.
	pause = 250 * time.Millisecond
)

var (
	errStale    = errors.New("the clocks of two replicas are more than 30 seconds apart")
	errUnopened = errors.New("another replica has another server secret")
	errTooLarge = errors.New("the headers do not fit into a message of the bus")
	errPanic    = errors.New("another replica has panicked")
)

// unopened answers what was not sealed for this replica with a secret that it knows. It is not sealed itself, because there is no name
// to seal it for; whoever forges it could as well let the message not arrive.
var unopened = []byte("sealed with another secret, or for another replica")

// tunnel carries requests to the replicas that hold their sessions, and serves what comes from those (R1). Each replica listens at one
// address, and every message is answered, so that a replica that has gone is noticed and a slow client slows down the tool.
type tunnel struct {
	bus       Bus
	replica   string
	keys      seal.KeyRing
	now       func() time.Time
	server    *Server
	exchanges *exchanges
	met       memory
	silences  silences
}

func newTunnel(s *Server) *tunnel {
	return &tunnel{
		bus: s.options.Bus, replica: s.replica, keys: s.options.Keys, now: s.options.Now, server: s, exchanges: newExchanges(),
	}
}

func addressOf(replica string) string { return "pasteport.replica." + replica }

// ask sends a frame to another replica and returns its answer.
func (t *tunnel) ask(ctx context.Context, to string, f frame) (frame, error) {
	f.ID, f.From, f.At = rand.Text(), t.replica, t.now()
	message, err := f.seal(t.keys, to)
	if err != nil {
		return frame{}, err
	}
	if len(message) > MaxBusMessage {
		return frame{}, errTooLarge
	}
	answer, err := t.bus.Ask(ctx, addressOf(to), message)
	if err != nil {
		return frame{}, fmt.Errorf("asking another replica: %w", err)
	}
	t.silences.end(to)
	if bytes.Equal(answer, unopened) {
		return frame{}, errUnopened
	}
	got, err := openFrame(t.keys, f.ID, answer)
	if err == nil && got.Kind == kindStale {
		err = errStale
	}
	return got, err
}

// askWithin is ask with a limit.
func (t *tunnel) askWithin(ctx context.Context, limit time.Duration, to string, f frame) (frame, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return t.ask(ctx, to, f)
}

// take answers a message. Only one that another replica has sealed gets a goroutine, in which it may wait for a client; any other may
// be from a replica that has got a new server secret earlier.
func (t *tunnel) take(message []byte, answer func([]byte)) {
	f, err := openFrame(t.keys, t.replica, message)
	if err != nil {
		t.server.options.Logger.Debug("cannot open a message on the bus", "error", err)
		answer(unopened)
		return
	}
	go func() {
		reply := t.reply(f)
		reply.From, reply.At = t.replica, t.now()
		sealed, err := reply.seal(t.keys, f.ID)
		if err != nil {
			t.server.options.Logger.Error("cannot answer another replica", "error", err)
			return
		}
		answer(sealed)
	}()
}

func (t *tunnel) reply(f frame) frame {
	if age := t.now().Sub(f.At).Abs(); age > freshness {
		return frame{Kind: kindStale}
	}
	switch f.Kind {
	case kindBeat:
		return frame{Kind: kindDone}
	case kindRequest:
		return frame{Kind: t.accept(f)}
	case kindCancel:
		t.met.first(f.Exchange, t.now()) // it may come before its request
	}
	return t.exchanges.find(f.Exchange, f.From).reply(f)
}

// begin opens an exchange with another replica, and watches that replica while there is one.
func (t *tunnel) begin(ctx context.Context, e *exchange) *exchange {
	e.ctx, e.cancel = context.WithCancelCause(ctx)
	if t.exchanges.add(e) {
		go t.watch(e.with)
	}
	return e
}

func (t *tunnel) end(e *exchange) {
	t.exchanges.remove(e)
	e.cancel(nil)
}

// watch asks a replica again and again whether it is there, as long as something is under way with it (R4).
func (t *tunnel) watch(replica string) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	heard := time.Now()
	for range ticker.C {
		if t.exchanges.forsake(replica) {
			return
		}
		err := t.beat(context.Background(), replica)
		switch {
		case err == nil:
			heard = time.Now()
		case isGone(err), time.Since(heard) >= silenceLimit:
			t.exchanges.lose(replica, t.whyLost(context.Background(), replica, err))
		}
	}
}

func (t *tunnel) beat(ctx context.Context, replica string) error {
	_, err := t.askWithin(ctx, beatEvery, replica, frame{Kind: kindBeat})
	return err
}

// whyLost tells a replica that has gone from one that pauses and from an outage of the bus. The bus says itself that nobody listens,
// unless somebody reads along at the broker; then a replica that hears itself, but for long no answer of the other, knows it too.
func (t *tunnel) whyLost(ctx context.Context, replica string, err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded) && t.beat(ctx, t.replica) == nil:
		if t.silences.meet(replica, t.now()) >= deathLimit {
			return fmt.Errorf("another replica does not answer: %w", oauth.ErrNotFound)
		}
	case ctx.Err() == nil: // an outage of the bus says nothing about who is silent meanwhile
		t.silences.end(replica)
	}
	return fmt.Errorf("losing another replica: %w", err)
}

// forward lets the replica that holds a session answer a request. Who may use the session has been decided before (R2).
func (t *tunnel) forward(w http.ResponseWriter, r *http.Request, to string, what request, body []byte) {
	e := t.begin(r.Context(), &exchange{id: rand.Text(), with: to, out: w, body: body, ended: make(chan struct{})})
	defer t.end(e)
	err := t.request(e, what)
	if err == nil {
		select {
		case <-e.ended:
		case <-e.ctx.Done():
			err = context.Cause(e.ctx)
		}
	}
	begun := e.close()
	if err == nil {
		return
	}
	go t.giveUp(e)
	switch {
	case begun, r.Context().Err() != nil: // whoever waits gets no more, or nobody does
	case errors.Is(err, errPanic):
		jsonrpc.WriteError(w, http.StatusInternalServerError, "Internal Server Error")
	case errors.Is(err, errTooLarge):
		jsonrpc.WriteError(w, http.StatusRequestHeaderFieldsTooLarge, "Request Header Fields Too Large")
	default:
		t.server.noSession(w, r, err)
	}
}

func (t *tunnel) request(e *exchange, what request) error {
	what.Length = len(e.body)
	answer, err := t.askWithin(e.ctx, askLimit, e.with, frame{
		Kind: kindRequest, Exchange: e.id, Request: &what, payload: e.body[:min(len(e.body), chunk)],
	})
	switch {
	case e.ctx.Err() != nil:
		return context.Cause(e.ctx) // the watch may know it earlier
	case err != nil:
		return t.whyLost(e.ctx, e.with, err)
	case answer.Kind != kindDone:
		return fmt.Errorf("another replica has refused a request: %s", answer.Kind)
	}
	return nil
}

// giveUp tells the other replica that nobody waits any more, or nobody answers. One that was silent hears it when it comes back, for
// it may have missed nothing itself and go on; one that has gone ends this.
func (t *tunnel) giveUp(e *exchange) {
	ctx, cancel := context.WithTimeout(context.Background(), tellLimit)
	defer cancel()
	for ctx.Err() == nil {
		_, err := t.askWithin(ctx, askLimit, e.with, frame{Kind: kindCancel, Exchange: e.id})
		if err == nil || isGone(err) {
			return
		}
		rest(ctx)
	}
}

// rest waits between two attempts.
func rest(ctx context.Context) {
	select {
	case <-time.After(pause):
	case <-ctx.Done():
	}
}

// crossing are the headers that go to another replica: what MCP needs, and what says where a request comes from. No token is among
// them (R3), and a tool sees no others wherever its session is, so that it does not depend on where a request arrives.
func crossing(header http.Header) http.Header {
	crosses := http.Header{}
	for name, values := range header {
		if strings.HasPrefix(name, "Mcp-") || slices.Contains([]string{
			"Accept", "Accept-Language", "Content-Type", "Last-Event-Id", "Traceparent", "Tracestate", "User-Agent", "X-Request-Id",
		}, name) {
			crosses[name] = values
		}
	}
	return crosses
}

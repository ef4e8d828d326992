package replica

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

const (
	// chunk is how much of a body or of a response is in one message.
	chunk = 256 << 10
	// askLimit is how long a replica may take to acknowledge a message.
	askLimit = 2 * time.Second
	// takeLimit is how long it may take to write a part of a response to its client; then the part is sent again.
	takeLimit = 5 * time.Second
	// beatEvery and silenceLimit end the calls with a silent replica within three seconds.
	beatEvery    = time.Second
	silenceLimit = 2500 * time.Millisecond
	// cancelLimit is how long cancel tries to reach a replica that may come back.
	cancelLimit = 30 * time.Second
	// retryPause is between two attempts to send a message.
	retryPause = 250 * time.Millisecond
)

var (
	errStale     = errors.New("the clocks of two replicas are more than 30 seconds apart")
	errUnopened  = errors.New("another replica has another server secret")
	errTooLarge  = errors.New("the headers do not fit into a message of the bus")
	errPanic     = errors.New("another replica has panicked")
	errCancelled = errors.New("the other replica has cancelled the call")
)

// unopened answers a message that was not sealed for this replica with a secret that it has. It is not sealed itself, because there is no
// name to seal it for; an attacker who forges it could as well drop the message.
var unopened = []byte("sealed with another secret, or for another replica")

// Options are what a Forwarder needs of its MCP server.
type Options struct {
	Bus      Bus
	Name     string // of this replica, random for each process
	Keys     seal.KeyRing
	Resource oauth.Resource
	MaxBody  int64
	Bodies   *jsonrpc.BodyMemory
	Now      func() time.Time
	Logger   *slog.Logger

	// Serve answers a call in a session that this replica owns.
	Serve func(w http.ResponseWriter, r *http.Request, call Call)
}

// Call is a request of an authenticated caller in a session.
type Call struct {
	Endpoint Endpoint
	Session  string // its id in the replica that owns it
	Caller   oauth.Caller
	Body     []byte
}

// Forwarder connects one replica with all others.
type Forwarder struct {
	Options
	calls       *forwardedCalls
	seen        seenCalls
	unreachable unreachablePeers
}

// New makes a Forwarder, which receives nothing before Listen.
func New(o Options) *Forwarder { return &Forwarder{Options: o, calls: newForwardedCalls()} }

func addressOf(replica string) string { return "pasteport.replica." + replica }

// Listen begins to answer other replicas.
func (f *Forwarder) Listen() error {
	if err := f.Bus.Listen(addressOf(f.Name), f.receive); err != nil {
		return fmt.Errorf("listening for other replicas: %w", err)
	}
	return nil
}

// Pending counts the calls under way with other replicas.
func (f *Forwarder) Pending() int { return f.calls.count() }

// Wait returns when no call is under way, or when ctx ends.
func (f *Forwarder) Wait(ctx context.Context) {
	for f.Pending() > 0 && ctx.Err() == nil {
		pause(ctx)
	}
}

// ask sends a frame to another replica and returns its answer.
func (f *Forwarder) ask(ctx context.Context, limit time.Duration, peer string, sent frame) (frame, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	sent.ID, sent.From, sent.At = rand.Text(), f.Name, f.Now()
	message, err := sent.seal(f.Keys, peer)
	if err != nil {
		return frame{}, err
	}
	if len(message) > MaxMessage {
		return frame{}, errTooLarge
	}
	answer, err := f.Bus.Ask(ctx, addressOf(peer), message)
	if err != nil {
		return frame{}, fmt.Errorf("asking another replica: %w", err)
	}
	f.unreachable.forget(peer)
	if bytes.Equal(answer, unopened) {
		return frame{}, errUnopened
	}
	got, err := openFrame(f.Keys, sent.ID, answer)
	if err == nil && got.Kind == kindStale {
		err = errStale
	}
	return got, err
}

// receive answers a message. Only a message that another replica has sealed gets a goroutine, in which it may wait for a client; any other
// message may come from a replica that got a new server secret earlier.
func (f *Forwarder) receive(message []byte, answer func([]byte)) {
	got, err := openFrame(f.Keys, f.Name, message)
	if err != nil {
		f.Logger.Debug("cannot open a message on the bus", "error", err)
		answer(unopened)
		return
	}
	go func() {
		reply := f.reply(got)
		reply.From, reply.At = f.Name, f.Now()
		sealed, err := reply.seal(f.Keys, got.ID)
		if err != nil {
			f.Logger.Error("cannot answer another replica", "error", err)
			return
		}
		answer(sealed)
	}()
}

func (f *Forwarder) reply(got frame) frame {
	if age := f.Now().Sub(got.At).Abs(); age > freshness {
		return frame{Kind: kindStale}
	}
	switch got.Kind {
	case kindBeat:
		return frame{Kind: kindDone}
	case kindRequest:
		return frame{Kind: f.accept(got)}
	case kindCancel:
		f.seen.first(got.Call, f.Now()) // it may arrive before its request
	}
	return f.calls.find(got.Call, got.From).reply(got)
}

// begin adds a call with another replica, and watches that replica while there is one.
func (f *Forwarder) begin(ctx context.Context, c *forwardedCall) *forwardedCall {
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	if f.calls.add(c) {
		go f.watch(c.peer)
	}
	return c
}

func (f *Forwarder) end(c *forwardedCall) {
	f.calls.remove(c)
	c.cancel(nil)
}

// watch sends heartbeats to a replica as long as a call is under way with it (R4).
func (f *Forwarder) watch(peer string) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	heard := time.Now()
	for range ticker.C {
		if f.calls.forgetIdle(peer) {
			return
		}
		err := f.beat(context.Background(), peer)
		switch {
		case err == nil:
			heard = time.Now()
		case isGone(err), time.Since(heard) >= silenceLimit:
			f.calls.cancelAll(peer, f.whyLost(context.Background(), peer, err))
		}
	}
}

func (f *Forwarder) beat(ctx context.Context, peer string) error {
	_, err := f.ask(ctx, beatEvery, peer, frame{Kind: kindBeat})
	return err
}

// whyLost distinguishes a replica that has gone from a replica that pauses and from an outage of the bus. The bus reports an address without
// a listener, unless another client of the broker subscribes to it. Then the proof is that this replica reaches itself, but has not reached
// the other one for long.
func (f *Forwarder) whyLost(ctx context.Context, peer string, err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded) && f.beat(ctx, f.Name) == nil:
		if f.unreachable.note(peer, f.Now()) >= deathLimit {
			return fmt.Errorf("another replica does not answer: %w", oauth.ErrNotFound)
		}
	case ctx.Err() == nil: // an outage of the bus proves nothing about the replica
		f.unreachable.forget(peer)
	}
	return fmt.Errorf("losing another replica: %w", err)
}

// pause waits between two attempts.
func pause(ctx context.Context) {
	select {
	case <-time.After(retryPause):
	case <-ctx.Done():
	}
}

// isGone reports that the session cannot come back, because its replica has gone.
func isGone(err error) bool { return errors.Is(err, oauth.ErrNotFound) }

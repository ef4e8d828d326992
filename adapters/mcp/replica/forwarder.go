// Package replica forwards a request to the replica of the service that owns its session.
//
// A Forwarder sends frames over a Bus. Forward sends a call to the owner of a session and writes
// its response as it arrives; the owner calls Options.Serve for it. Frames are sealed with the
// server secret and contain no token. Each frame is acknowledged, so that a lost replica is
// detected and a slow client slows down the tool.
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

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

const (
	chunkSize = 256 << 10 // of a body or a response in one message

	askTimeout    = 2 * time.Second  // until a message is acknowledged
	partTimeout   = 5 * time.Second  // until a part of a response is written to the client; then it is sent again
	cancelTimeout = 30 * time.Second // of all attempts of cancel
	retryInterval = 250 * time.Millisecond

	// The calls with a silent replica end within three seconds.
	heartbeatInterval = time.Second
	silenceLimit      = 2500 * time.Millisecond
)

var (
	errStale     = errors.New("the clocks of two replicas are more than 30 seconds apart")
	errNotOpened = errors.New("another replica has another server secret")
	errTooLarge  = errors.New("the headers do not fit into a message of the bus")
	errPanic     = errors.New("another replica panicked")
	errCancelled = errors.New("the other replica has cancelled the call")
)

// notOpened is the answer to a message that cannot be unsealed. It is not sealed, because the
// sender is unknown. An attacker who forges it could as well drop the message.
var notOpened = []byte("sealed with another secret, or for another replica")

// Options configure a Forwarder. All fields are required.
type Options struct {
	Bus      Bus
	Name     string // of this replica; random for each process
	Keys     seal.KeyRing
	Resource oauth.Resource
	MaxBody  int64
	Bodies   *jsonrpc.BodyMemory
	Now      func() time.Time
	Logger   *slog.Logger

	// Serve answers a call in a session of this replica.
	Serve func(w http.ResponseWriter, r *http.Request, call Call)
}

// Call is a request of an authenticated caller in a session.
type Call struct {
	Endpoint Endpoint
	Session  string // its id in the replica that owns it
	Caller   oauth.Caller
	Body     []byte
}

// Forwarder forwards calls to other replicas and answers theirs.
type Forwarder struct {
	Options
	calls       *forwardedCalls
	seen        seenCalls
	unreachable unreachablePeers
}

// New returns a Forwarder. It receives nothing before Listen.
func New(o Options) *Forwarder { return &Forwarder{Options: o, calls: newForwardedCalls()} }

func addressOf(replica string) string { return "pasteport.replica." + replica }

// Listen starts to answer other replicas.
func (f *Forwarder) Listen() error {
	if err := f.Bus.Listen(addressOf(f.Name), f.receive); err != nil {
		return fmt.Errorf("listening for other replicas: %w", err)
	}
	return nil
}

// Pending returns the number of calls with other replicas.
func (f *Forwarder) Pending() int { return f.calls.count() }

// Wait waits for all calls with other replicas, or until ctx ends.
func (f *Forwarder) Wait(ctx context.Context) {
	for f.Pending() > 0 && ctx.Err() == nil {
		waitRetry(ctx)
	}
}

// ask sends a frame to another replica and returns its answer.
func (f *Forwarder) ask(ctx context.Context, timeout time.Duration, peer string, sent frame) (frame, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
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
	if bytes.Equal(answer, notOpened) {
		return frame{}, errNotOpened
	}
	got, err := openFrame(f.Keys, sent.ID, answer)
	if err == nil && got.Kind == kindStale {
		err = errStale
	}
	return got, err
}

// receive answers a message. Only a message of another replica gets a goroutine, in which it may
// wait for a client. A message that cannot be unsealed may be of a replica that has a new server
// secret already.
func (f *Forwarder) receive(message []byte, answer func([]byte)) {
	got, err := openFrame(f.Keys, f.Name, message)
	if err != nil {
		f.Logger.Debug("cannot open a message on the bus", "error", err)
		answer(notOpened)
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
	case kindHeartbeat:
		return frame{Kind: kindDone}
	case kindRequest:
		return frame{Kind: f.accept(got)}
	case kindCancel:
		f.seen.first(got.Call, f.Now()) // it may arrive before its request
	}
	return f.calls.find(got.Call, got.From).reply(got)
}

// begin adds a call, and starts to monitor its peer if it is the first.
func (f *Forwarder) begin(ctx context.Context, c *forwardedCall) *forwardedCall {
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	if f.calls.add(c) {
		go f.monitor(c.peer)
	}
	return c
}

func (f *Forwarder) end(c *forwardedCall) {
	f.calls.remove(c)
	c.cancel(nil)
}

// monitor sends heartbeats to a peer while there are calls with it, and cancels them when it does
// not answer.
func (f *Forwarder) monitor(peer string) {
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	answered := time.Now()
	for range ticker.C {
		if f.calls.removeIdle(peer) {
			return
		}
		err := f.sendHeartbeat(context.Background(), peer)
		switch {
		case err == nil:
			answered = time.Now()
		case isGone(err), time.Since(answered) >= silenceLimit:
			f.calls.cancelAll(peer, f.lossError(context.Background(), peer, err))
		}
	}
}

func (f *Forwarder) sendHeartbeat(ctx context.Context, peer string) error {
	_, err := f.ask(ctx, heartbeatInterval, peer, frame{Kind: kindHeartbeat})
	return err
}

// lossError returns oauth.ErrNotFound for a replica that has gone, and another error for a pause or
// an outage of the bus. The bus reports an address without a listener, unless another client of the
// broker subscribes to it. Then a replica has gone if it has not answered for goneAfter while this
// replica can reach itself over the bus.
func (f *Forwarder) lossError(ctx context.Context, peer string, err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded) && f.sendHeartbeat(ctx, f.Name) == nil:
		if f.unreachable.record(peer, f.Now()) >= goneAfter {
			return fmt.Errorf("another replica does not answer: %w", oauth.ErrNotFound)
		}
	case ctx.Err() == nil: // an outage of the bus proves nothing about the replica
		f.unreachable.forget(peer)
	}
	return fmt.Errorf("losing another replica: %w", err)
}

func waitRetry(ctx context.Context) {
	select {
	case <-time.After(retryInterval):
	case <-ctx.Done():
	}
}

// isGone reports whether the other replica or its call has ended.
func isGone(err error) bool { return errors.Is(err, oauth.ErrNotFound) }

// Bus carries messages of up to MaxMessage bytes between the replicas of a service. They are
// sealed, so that the broker can neither read nor forge them.
type Bus interface {
	// Listen calls receive for each message to the address, one at a time, so that a flood of
	// messages does not pile up, until the bus is closed. receive returns soon, and calls answer at
	// most once, then or later.
	Listen(address string, receive func(message []byte, answer func([]byte))) error
	// Ask sends a message and returns the answer. It fails with oauth.ErrNotFound if the address
	// has no listener. Any other error is an outage, after which the message may have arrived or
	// not.
	Ask(ctx context.Context, address string, message []byte) (answer []byte, err error)
}

// MaxMessage is the maximum size of a message in bytes, half of the default limit of NATS.
const MaxMessage = 512 << 10

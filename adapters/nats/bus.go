// Package nats carries messages between the replicas of a service over a NATS server or a cluster of them.
package nats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	// messageLimit is the largest message that has to fit.
	messageLimit = 512 << 10
	// openLimit is how long the server may take at first.
	openLimit = 5 * time.Second
	// retryEvery, and up to as much again by chance, is between two attempts to come back to a server that was lost; a server that
	// says nothing for two times pingEvery is lost.
	retryEvery = 500 * time.Millisecond
	pingEvery  = 5 * time.Second
	// settleLimit is how long others may take to come back after this replica. Until then nobody is known to be gone.
	settleLimit = 3 * time.Second
)

// ErrSettling is why nobody can be told to be gone just after the connection came back: others may come back in a moment.
var ErrSettling = errors.New("nobody listens there yet, just after the connection to the bus came back")

// Bus is one connection, which comes back by itself for ever.
type Bus struct {
	connection *nats.Conn
	away       atomic.Bool // until the return is noted, which is a moment after the connection is back
	returned   atomic.Pointer[time.Time]
}

// Open connects to a server by its URL, or to one of several that are separated by commas. It fails when there is none: afterwards an
// outage passes by itself, but at the start it is more likely a mistake.
func Open(address string, logger *slog.Logger) (*Bus, error) {
	b := new(Bus)
	connection, err := nats.Connect(address,
		nats.Name("pasteport"), nats.Timeout(openLimit), nats.MaxReconnects(-1), nats.ReconnectWait(retryEvery),
		nats.ReconnectJitter(retryEvery, retryEvery), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(1),
		nats.ReconnectBufSize(-1), // what cannot be sent now fails now
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			b.away.Store(true)
			logger.Error("the bus is lost", "error", err)
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			now := time.Now()
			b.returned.Store(&now)
			b.away.Store(false)
			logger.Info("the bus is back")
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			logger.Error("the bus has refused something", "error", err)
		}),
	)
	if malformed := new(url.Error); errors.As(err, &malformed) {
		err = malformed.Err // without the URL, which may hold a password
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to the bus at %s: %w", withoutSecrets(address), err)
	}
	if b.connection = connection; connection.MaxPayload() < messageLimit {
		connection.Close()
		return nil, fmt.Errorf("connecting to the bus at %s: its max_payload is %d: set it to %d or more", withoutSecrets(address), connection.MaxPayload(), messageLimit)
	}
	return b, nil
}

// withoutSecrets names servers without who may use them.
func withoutSecrets(addresses string) string {
	var shown []string
	for address := range strings.SplitSeq(addresses, ",") {
		at, err := url.Parse(strings.TrimSpace(address))
		if err != nil || at.Host == "" || at.Fragment != "" || strings.Contains(at.EscapedPath(), "@") { // the rest of a password
			return "the configured address"
		}
		shown = append(shown, at.Scheme+"://"+at.Host)
	}
	return strings.Join(shown, ",")
}

// Listen gives take what is sent to the address, one message after the other, until the bus is closed. What comes faster than it is
// taken waits, and beyond the 64 MiB of nats.DefaultSubPendingBytesLimit it is dropped.
func (b *Bus) Listen(address string, take func(message []byte, answer func([]byte))) error {
	_, err := b.connection.Subscribe(address, func(m *nats.Msg) {
		take(m.Data, func(answer []byte) { _ = m.Respond(answer) }) // whoever asked will notice a failure
	})
	if err != nil {
		return fmt.Errorf("listening on the bus: %w", err)
	}
	if err := b.connection.FlushTimeout(openLimit); err != nil {
		return fmt.Errorf("listening on the bus: %w", err)
	}
	return nil
}

// Ask sends a message and waits for the answer. It fails with oauth.ErrNotFound at once when nobody listens at the address.
func (b *Bus) Ask(ctx context.Context, address string, message []byte) ([]byte, error) {
	settling := b.settling()
	answer, err := b.connection.RequestWithContext(ctx, address, message)
	switch {
	case settling && (errors.Is(err, nats.ErrNoResponders) || errors.Is(err, context.DeadlineExceeded)):
		return nil, ErrSettling
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("asking over the bus: %w", oauth.ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("asking over the bus: %w", err)
	}
	return answer.Data, nil
}

func (b *Bus) settling() bool {
	returned := b.returned.Load()
	return b.away.Load() || returned != nil && time.Since(*returned) < settleLimit
}

// Ping fails while the server cannot be reached.
func (b *Bus) Ping(context.Context) error {
	if status := b.connection.Status(); status != nats.CONNECTED {
		return fmt.Errorf("the bus is %s", strings.ToLower(status.String()))
	}
	return nil
}

// Close ends the connection.
func (b *Bus) Close() { b.connection.Close() }

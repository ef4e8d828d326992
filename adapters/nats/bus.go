// Package nats carries messages between the replicas of a service over NATS. Open returns a Bus,
// which one replica uses to Listen at an address and to Ask others.
package nats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pasteport/pasteport/adapters/internal/outbound"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	messageLimit  = 512 << 10 // bytes that the server must allow
	openLimit     = 5 * time.Second
	retryInterval = 500 * time.Millisecond // and up to as much jitter
	pingInterval  = 5 * time.Second        // two missed pongs end a connection
	// settleLimit is the time for other replicas to reconnect after this one. Until then, a missing
	// listener may still return.
	settleLimit = 3 * time.Second
)

// ErrSettling is returned instead of oauth.ErrNotFound shortly after a reconnect, because other
// replicas may still be reconnecting.
var ErrSettling = errors.New("no listener at the address yet, shortly after the bus reconnected")

// Bus is a connection to NATS that reconnects forever. It is safe for concurrent use.
type Bus struct {
	connection    *nats.Conn
	disconnected  atomic.Bool // from a disconnect until reconnectedAt is set
	reconnectedAt atomic.Pointer[time.Time]
}

// Open connects to one of the servers in a comma-separated list of URLs. It fails when none is
// reachable, because at startup a wrong address is more likely than an outage.
func Open(address string, logger *slog.Logger) (*Bus, error) {
	hosts, err := hostsOf(address)
	if err != nil {
		return nil, err
	}
	b := new(Bus)
	connection, err := nats.Connect(address,
		nats.Name("pasteport"), nats.Timeout(openLimit), nats.MaxReconnects(-1), nats.ReconnectWait(retryInterval),
		nats.ReconnectJitter(retryInterval, retryInterval), nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(1),
		nats.ReconnectBufSize(-1), // fail immediately instead of buffering messages until a reconnect
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			b.disconnected.Store(true)
			logger.Error("the bus is disconnected", "error", err)
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			now := time.Now()
			b.reconnectedAt.Store(&now)
			b.disconnected.Store(false)
			logger.Info("the bus is reconnected")
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			logger.Error("the bus reports an error", "error", err)
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("connecting to the bus at %s: %w", hosts, err)
	}
	if b.connection = connection; connection.MaxPayload() < messageLimit {
		connection.Close()
		return nil, fmt.Errorf("connecting to the bus at %s: its max_payload is %d: set it to %d or more",
			hosts, connection.MaxPayload(), messageLimit)
	}
	return b, nil
}

// Check returns an oauth.Mistake unless the address is a comma-separated list of URLs of NATS
// servers. It does not repeat them, because they may hold a password.
func Check(address string) error {
	_, err := hostsOf(address)
	return err
}

// hostsOf returns addresses without users and passwords.
func hostsOf(addresses string) (string, error) {
	var hosts []string
	for address := range strings.SplitSeq(addresses, ",") {
		at, valid := outbound.ParseServer(strings.TrimSpace(address))
		if !valid || at.Scheme != "nats" && at.Scheme != "tls" || at.Host == "" {
			return "", oauth.NewMistake("%s is not the URL of a NATS server: write nats://host:4222, or "+
				"tls://host:4222, with %%2F for a slash in the password, and so on", oauth.Field("Bus"))
		}
		hosts = append(hosts, at.Scheme+"://"+at.Host)
	}
	return strings.Join(hosts, ","), nil
}

// Listen calls handle for each message to the address, one at a time, until the bus is closed. It
// queues up to 64 MiB of messages (nats.DefaultSubPendingBytesLimit) and drops further ones.
func (b *Bus) Listen(address string, handle func(message []byte, answer func([]byte))) error {
	_, err := b.connection.Subscribe(address, func(m *nats.Msg) {
		handle(m.Data, func(answer []byte) { _ = m.Respond(answer) }) // if it fails, Ask times out
	})
	if err != nil {
		return fmt.Errorf("listening on the bus: %w", err)
	}
	if err := b.connection.FlushTimeout(openLimit); err != nil {
		return fmt.Errorf("listening on the bus: %w", err)
	}
	return nil
}

// Ask sends a message and waits for the answer. Without a listener at the address it returns
// oauth.ErrNotFound immediately.
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
	reconnectedAt := b.reconnectedAt.Load()
	return b.disconnected.Load() || reconnectedAt != nil && time.Since(*reconnectedAt) < settleLimit
}

// Ping returns an error while the server cannot be reached.
func (b *Bus) Ping(context.Context) error {
	if status := b.connection.Status(); status != nats.CONNECTED {
		return fmt.Errorf("the bus is %s", strings.ToLower(status.String()))
	}
	return nil
}

// Close ends the connection.
func (b *Bus) Close() { b.connection.Close() }

package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/pasteport/pasteport/adapters/outbound"
)

const (
	idlePerUpstream = 256
	idleLimit       = 3 * time.Second // shorter than Node and Python keep one, so that none is used that they are just closing
	failuresInARow  = 5
	restLimit       = 5 * time.Second // until a dead upstream is tried again
	probeLimit      = 2 * time.Second // after which one that was down and is slow now counts as back
)

var errSlow = errors.New("it took longer than upstream-timeout")

// transport asks an upstream that is alive, and does not wait for ever.
type transport struct {
	next     http.RoundTripper
	breaker  *gobreaker.TwoStepCircuitBreaker[struct{}]
	patience time.Duration
	probe    time.Duration
}

// newTransport lets a dead upstream rest before it is tried again.
func newTransport(o Options, rest time.Duration) *transport {
	next := o.Transport(idlePerUpstream, idleLimit)
	next.DisableCompression = true
	return &transport{next: next, patience: o.Patience, probe: probeLimit, breaker: gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     rest,
		ReadyToTrip: func(counts gobreaker.Counts) bool { return counts.ConsecutiveFailures >= failuresInARow },
		IsExcluded:  func(err error) bool { return errors.Is(err, context.Canceled) }, // whoever asked has gone, which says nothing
		OnStateChange: func(_ string, _, to gobreaker.State) {
			o.Logger.Warn("the upstream's circuit breaker has changed", "state", to.String(), "rule", "U10")
		},
	})}
}

// RoundTrip implements http.RoundTripper; its errors are Failures, but for the end of the request's own context.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	settle, err := t.admit()
	if err != nil {
		return nil, &Failure{http.StatusServiceUnavailable, "U10", "The MCP server behind this gateway is down; it is tried again in a few seconds", err}
	}
	ctx, cancel := context.WithCancelCause(uninformed{r.Context()})
	if r.Method != http.MethodGet { // a stream may begin whenever it has something to say
		timer := time.AfterFunc(t.patience, func() { cancel(errSlow) })
		defer timer.Stop()
	}
	answer, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		err = failureOf(err, ctx)
		cancel(nil)
		settle(err)
		return nil, err
	}
	settle(ailing(answer.StatusCode))
	answer.Body = &ending{answer.Body, answer, cancel}
	return answer, nil
}

// admit asks the breaker. The request that tries an upstream again holds up all others, so it may not take as long as calls and
// streams can: one that took it and has not failed since is alive.
func (t *transport) admit() (settle func(error), err error) {
	trying := t.breaker.State() != gobreaker.StateClosed
	done, err := t.breaker.Allow()
	if err != nil {
		return nil, err
	}
	var once sync.Once
	settle = func(err error) { once.Do(func() { done(err) }) }
	if trying {
		time.AfterFunc(t.probe, func() { settle(nil) })
	}
	return settle, nil
}

// ending frees what was kept for a request when its answer is closed, and drops the headers that came behind the body: nobody has
// looked at them.
type ending struct {
	io.ReadCloser
	answer *http.Response
	free   context.CancelCauseFunc
}

// Close implements io.Closer.
func (e *ending) Close() error {
	defer e.free(nil)
	err := e.ReadCloser.Close()
	e.answer.Trailer = nil
	return err
}

// failureOf says what came between.
func failureOf(err error, ctx context.Context) error {
	var timeout net.Error
	switch {
	case errors.Is(context.Cause(ctx), errSlow):
		return failed(http.StatusGatewayTimeout, "did not answer in time", errSlow)
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &timeout) && timeout.Timeout():
		return failed(http.StatusGatewayTimeout, "cannot be reached in time", outbound.Reason(err))
	}
	return failed(http.StatusBadGateway, "cannot be reached", outbound.Reason(err))
}

// ailing is an error for a status that another server gives in the upstream's place, or that it gives when it can do nothing at all.
func ailing(status int) error {
	switch status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return errors.New(http.StatusText(status))
	}
	return nil
}

// buffers are lent to answers under way; without it each would take 32 KiB of its own, most of what a small call allocates.
type buffers struct{ pool sync.Pool }

const bufferBytes = 32 << 10

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	if lent, ok := b.pool.Get().(*[bufferBytes]byte); ok {
		return lent[:]
	}
	return make([]byte, bufferBytes)
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(lent []byte) { b.pool.Put((*[bufferBytes]byte)(lent)) }

// uninformed keeps the reverse proxy from passing on informational answers, whose headers nobody has looked at.
type uninformed struct{ context.Context }

// Value implements context.Context.
func (u uninformed) Value(key any) any {
	value := u.Context.Value(key)
	if _, tracing := value.(*httptrace.ClientTrace); tracing {
		return nil
	}
	return value
}

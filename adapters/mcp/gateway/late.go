package gateway

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/stream"
)

// silence is how long an upstream may take to begin its answer to a call before the client gets a
// stream instead. Proxies close connections that are idle for 30 s.
const silence = 20 * time.Second

// lateAnswer is the response to a call. If the upstream is silent for too long, lateAnswer opens a
// stream for a client that accepts one, and sends the answer as its only event. It passes on an
// answer in time, and any events of the upstream, as they are.
type lateAnswer struct {
	*stream.Writer
	id     message.ID
	header http.Header // of the upstream's answer
	timer  *time.Timer // calls open; nil if the client gets no stream
	memory message.Reservation

	mu      sync.Mutex
	isOpen  bool // open has begun the stream
	isBegun bool // the upstream has answered, or finish has begun; only the handler's goroutine writes it
	body    message.Buffer
}

func (g *Gateway) newLateAnswer(out *stream.Writer, r *http.Request, b message.Body) *lateAnswer {
	l := &lateAnswer{
		Writer: out,
		id:     b.ID(),
		header: out.Header().Clone(),
		memory: g.options.Bodies.Reserve(out.Identity().Caller.Subject),
	}
	l.body.Reserve = l.memory.Extend
	// An answer to initialize needs its own header, which has the id of the session.
	accepted := strings.Join(r.Header.Values("Accept"), ",")
	if !l.id.IsZero() && b.Only().Method != "initialize" && strings.Contains(accepted, message.EventStream) {
		l.timer = time.AfterFunc(g.silence, l.open)
	}
	return l
}

func (l *lateAnswer) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isBegun {
		return
	}
	l.isOpen = true
	l.Writer.Header().Set("Content-Type", message.EventStream)
	l.Writer.Header().Set("Cache-Control", "no-store")
	l.Writer.WriteHeader(http.StatusOK)
	_, _ = l.Writer.Write(message.OpeningComment)
	_ = l.Writer.FlushError() // an error means that the response has ended
}

// passes reports whether the response goes to the client as it is.
func (l *lateAnswer) passes() bool { return !l.isOpen || message.IsEventStream(l.header) }

func (l *lateAnswer) Header() http.Header { return l.header }

func (l *lateAnswer) WriteHeader(status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isBegun = status >= http.StatusOK; l.isOpen {
		l.body.Reset() // this response may replace one that was cut off
		return
	}
	header := l.Writer.Header()
	clear(header)
	maps.Copy(header, l.header)
	l.Writer.WriteHeader(status)
}

func (l *lateAnswer) Write(p []byte) (int, error) {
	if !l.isBegun {
		l.WriteHeader(http.StatusOK)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.passes() {
		return l.Writer.Write(p)
	}
	l.body.Keep(p)
	return len(p), nil
}

// FlushError is called by http.ResponseController.
func (l *lateAnswer) FlushError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.passes() || !l.isBegun {
		return nil
	}
	return l.Writer.FlushError()
}

// IsAwaited reports whether the client waits for an answer of which it has got nothing.
func (l *lateAnswer) IsAwaited() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isOpen && !l.passes() || l.Writer.IsAwaited()
}

// finish sends the answer as the event of an open stream. open does nothing after finish.
func (l *lateAnswer) finish() {
	defer l.memory.Release()
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isBegun = true
	if l.passes() {
		return
	}
	found, isBatch, err := message.Decode(l.body.Bytes())
	if err = errors.Join(err, l.body.Failed); err != nil || isBatch || !found[0].IsResponse() {
		found = []message.Message{message.ErrorFor(l.id, message.CodeUnavailable, unfiltered)}
	}
	_, _ = l.Writer.Write(message.Event("message", "", found[0].Encode()))
	_ = l.Writer.FlushError()
}

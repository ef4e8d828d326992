package response

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/pasteport/pasteport/adapters/mcp/message"
)

const (
	// maxBehind is how many bytes a client may be behind when another event is written. It is more
	// than a server keeps of all sessions, which a client that resumes a stream gets at once.
	maxBehind = 16 << 20
	// freeQueue is how many queued bytes need no reservation.
	freeQueue = 64 << 10
)

var (
	errBehind = errors.New("the client does not read fast enough")
	errClosed = errors.New("the response has ended")
)

// Queue is a response that does not make its writer wait for the client, because one goroutine
// writes all responses of a session. Another goroutine sends what is queued. When a client has
// fallen too far behind, or memory for more is not available, writes fail and the context of the
// request ends. The client can resume the stream, whose events the server keeps.
type Queue struct {
	http.ResponseWriter
	wrote  func(events []byte)
	cancel context.CancelFunc

	mu      sync.Mutex
	idle    sync.Cond // signalled when sending becomes false
	memory  message.Reservation
	queued  []byte
	behind  int // bytes that are queued or being written
	begun   bool
	flush   bool
	sending bool
	err     error
}

// NewQueue returns a queue for the response, and the request with a context that ends when writes
// fail. It calls wrote with the events that were sent. Call Close before the handler returns.
func NewQueue(w http.ResponseWriter, r *http.Request, memory message.Reservation,
	wrote func(events []byte)) (*Queue, *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	q := &Queue{
		ResponseWriter: w,
		wrote:          wrote,
		cancel:         cancel,
		memory:         memory,
	}
	q.idle.L = &q.mu
	return q, r.WithContext(ctx)
}

// WriteHeader implements http.ResponseWriter.
func (q *Queue) WriteHeader(status int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.begun = true
	q.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter. An event must be written as a whole.
func (q *Queue) Write(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.begun { // while no other goroutine uses the header
		q.begun = true
		q.ResponseWriter.WriteHeader(http.StatusOK)
	}
	after := q.behind + len(p)
	if q.err == nil && (q.behind > maxBehind || after > freeQueue && q.memory.Extend(int64(after)) != nil) {
		q.fail(errBehind)
	}
	if q.err != nil {
		return 0, q.err
	}
	q.queued, q.behind = append(q.queued, p...), after
	q.start()
	return len(p), nil
}

// FlushError is called by http.ResponseController.
func (q *Queue) FlushError() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flush = true
	q.start()
	return q.err
}

// Close waits until everything is sent, or cannot be.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.sending {
		q.idle.Wait()
	}
	q.fail(errClosed)
	q.memory.Release()
}

func (q *Queue) fail(err error) {
	if q.err == nil {
		q.err, q.queued = err, nil
		q.cancel()
	}
}

func (q *Queue) start() {
	if !q.sending && q.err == nil {
		q.sending = true
		go q.send()
	}
}

// send sends until the queue is empty.
func (q *Queue) send() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.err == nil && (len(q.queued) > 0 || q.flush) {
		events, flush := q.queued, q.flush
		q.queued, q.flush = nil, false
		q.mu.Unlock()
		err := q.pass(events, flush)
		q.mu.Lock()
		if q.behind -= len(events); err != nil {
			q.fail(err)
		}
	}
	q.memory.Release()
	q.sending = false
	q.idle.Broadcast()
}

func (q *Queue) pass(events []byte, flush bool) error {
	if len(events) > 0 {
		if _, err := q.ResponseWriter.Write(events); err != nil {
			return err
		}
		q.wrote(events)
	}
	if flush {
		return http.NewResponseController(q.ResponseWriter).Flush()
	}
	return nil
}

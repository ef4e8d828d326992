package cimd

import (
	"context"
	"sync"

	"github.com/pasteport/pasteport/domain/oauth"
)

// flight is a fetch for several requests. Each request waits for a slot in the queue of its
// network, and the first that gets one starts the fetch for all. So a request does not wait in the
// queue of an attacker who requests the same document.
type flight[T any] struct {
	users   int // guarded by flights.mu
	started context.Context
	start   context.CancelFunc
	landed  chan struct{}
	value   T // set before landed is closed, like err
	err     error
}

func (f *flight[T]) hasStarted() bool { return f.started.Err() != nil }

// flights holds the flights that have not landed, by document.
type flights[T any] struct {
	mu     sync.Mutex
	byName map[string]*flight[T]
}

func newFlights[T any]() *flights[T] { return &flights[T]{byName: map[string]*flight[T]{}} }

// join returns the flight for a document. The caller must call leave.
func (fs *flights[T]) join(at oauth.ClientID) *flight[T] {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f, found := fs.byName[at.String()]
	if !found {
		f = &flight[T]{landed: make(chan struct{})}
		f.started, f.start = context.WithCancel(context.Background()) //nolint:gosec // begin or leave calls start
		fs.byName[at.String()] = f
	}
	f.users++
	return f
}

// leave removes a flight that has not started when its last request leaves.
func (fs *flights[T]) leave(at oauth.ClientID, f *flight[T]) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f.users--; f.users == 0 && !f.hasStarted() {
		delete(fs.byName, at.String())
		f.start()
	}
}

// begin reports whether the caller is the first to start the flight.
func (fs *flights[T]) begin(f *flight[T]) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	first := !f.hasStarted()
	f.start()
	return first
}

// land returns the result to all requests of the flight. The next request joins another one.
func (fs *flights[T]) land(at oauth.ClientID, f *flight[T], value T, err error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.byName, at.String())
	f.value, f.err = value, err
	close(f.landed)
}

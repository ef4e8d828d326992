package inprocess

import (
	"context"
	"errors"
	"sync"

	"github.com/pasteport/pasteport/domain/oauth"
)

// wire is a bus within this process that records its messages.
type wire struct {
	mu        sync.Mutex
	listeners map[string]func([]byte, func([]byte))
	carried   []carried
	outage    error
	silent    map[string]bool // addresses whose messages are lost
}

type carried struct {
	address         string
	message, answer []byte
}

var errDown = errors.New("the bus is down")

func newWire() *wire {
	return &wire{listeners: map[string]func([]byte, func([]byte)){}, silent: map[string]bool{}}
}

func (b *wire) Listen(address string, take func([]byte, func([]byte))) error {
	b.set(func() { b.listeners[address] = take })
	return nil
}

func (b *wire) Ask(ctx context.Context, address string, message []byte) ([]byte, error) {
	b.mu.Lock()
	take, listens, outage, silent := b.listeners[address], b.listeners[address] != nil, b.outage, b.silent[address]
	b.mu.Unlock()
	switch {
	case outage != nil:
		return nil, outage
	case silent:
		<-ctx.Done()
		return nil, ctx.Err()
	case !listens:
		return nil, oauth.ErrNotFound
	}
	answered := make(chan []byte, 1)
	take(message, func(answer []byte) {
		b.set(func() { b.carried = append(b.carried, carried{address, message, answer}) })
		answered <- answer
	})
	select {
	case answer := <-answered:
		return answer, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (b *wire) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// all returns all messages so far.
func (b *wire) all() []carried {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]carried(nil), b.carried...)
}

// addressOf returns the address of a replica.
func addressOf(replica string) string { return "pasteport.replica." + replica }

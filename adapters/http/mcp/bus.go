package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

// Bus carries messages of up to MaxBusMessage bytes between the replicas of a service (R1). They are sealed: whoever reads or writes
// at a broker reads nothing and calls nothing (R3).
type Bus interface {
	// Listen gives take what is sent to the address, one message after the other, so that nothing piles up for who floods it. take
	// returns soon, and calls answer at most once, then or at any time. It goes on until the bus is closed.
	Listen(address string, take func(message []byte, answer func([]byte))) error
	// Ask sends a message and waits for the answer. It fails with oauth.ErrNotFound when it is certain that nobody listens at the
	// address; every other error is an outage, after which the message may have arrived or not.
	Ask(ctx context.Context, address string, message []byte) (answer []byte, err error)
}

// MaxBusMessage is the size of the largest message, about half of what NATS lets pass when nobody has said anything else.
const MaxBusMessage = 512 << 10

// freshness is how old a message may be, or how far ahead the clock of its sender.
const freshness = 30 * time.Second

// kind is what a frame is for.
type kind string

const (
	// From the replica that a client has asked to the one that holds the session.
	kindRequest kind = "request"
	// Back from there.
	kindBody kind = "body" // asks for the rest of a large body
	kindPart kind = "part" // of the answer
	// Both ways.
	kindBeat   kind = "beat"   // as long as something is under way
	kindCancel kind = "cancel" // nobody waits any more, or nobody answers

	// The answers to all of these.
	kindDone  kind = "done"
	kindGone  kind = "gone"  // there is no such exchange, or no more
	kindStale kind = "stale" // by the clock of who answers
)

// frame is one message between two replicas. No token is in it (R3).
type frame struct {
	Kind     kind      `json:"kind"`
	ID       string    `json:"id"` // its answer is sealed for it
	From     string    `json:"from"`
	At       time.Time `json:"at"`
	Exchange string    `json:"exchange,omitempty"`
	Request  *request  `json:"request,omitempty"`
	Offset   int       `json:"offset,omitempty"` // of the body that is asked for
	Part     *part     `json:"part,omitempty"`

	payload []byte // of a body or an answer, behind the rest
}

// request is what the holder of a session has to know of a request.
type request struct {
	Endpoint endpoint    `json:"endpoint"`
	Method   string      `json:"method"`
	Session  string      `json:"session"` // as its holder calls it
	Header   http.Header `json:"header"`
	Length   int         `json:"length"` // of the body, of which the payload is the beginning
	Caller   caller      `json:"caller"`
}

// endpoint tells the two bindings with sessions apart.
type endpoint string

const (
	endpointMCP     endpoint = "mcp"
	endpointMessage endpoint = "message" // of HTTP+SSE
)

// part is a piece of an answer; the first one has a status.
type part struct {
	Number int         `json:"number"`
	Status int         `json:"status,omitempty"`
	Header http.Header `json:"header,omitempty"`
	Last   bool        `json:"last,omitempty"`
	Failed bool        `json:"failed,omitempty"` // the handler has panicked
}

// caller is an oauth.Caller on its way.
type caller struct {
	Grant, Client, Subject string
	Roles, Scopes          []string
	ExpiresAt              time.Time
}

func callerFrom(c *oauth.Caller) caller {
	return caller{c.Grant, c.Client.String(), c.Subject, c.Roles, c.Scopes.Values(), c.ExpiresAt}
}

func (c caller) restore() oauth.Caller {
	return oauth.Caller{
		Grant: c.Grant, Client: oauth.RestoreClientID(c.Client), Subject: c.Subject, Roles: c.Roles, Scopes: oauth.NewScopes(c.Scopes...),
		ExpiresAt: c.ExpiresAt,
	}
}

// seal makes a message of a frame, for the given name only.
func (f frame) seal(keys seal.KeyRing, name string) ([]byte, error) {
	head, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encoding a frame: %w", err)
	}
	return keys.SealMessage(name, bytes.Join([][]byte{head, f.payload}, []byte("\n"))) // JSON has no line end of its own
}

func openFrame(keys seal.KeyRing, name string, message []byte) (f frame, err error) {
	plain, err := keys.OpenMessage(name, message)
	if err != nil {
		return frame{}, err
	}
	head, payload, _ := bytes.Cut(plain, []byte("\n"))
	if err := json.Unmarshal(head, &f); err != nil {
		return frame{}, fmt.Errorf("decoding a frame: %w", err)
	}
	f.payload = payload
	return f, nil
}

// memory knows which exchanges there were for longer than a message is fresh, so that a repeated one calls nothing again.
type memory struct {
	mu           sync.Mutex
	turned       time.Time
	older, newer map[string]struct{}
}

// first reports whether the exchange is met for the first time.
func (m *memory) first(exchange string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.newer == nil || now.Sub(m.turned) > 2*freshness { // the clock of a sender may be ahead by as much
		m.turned, m.older, m.newer = now, m.newer, map[string]struct{}{}
	}
	_, old := m.older[exchange]
	_, known := m.newer[exchange]
	m.newer[exchange] = struct{}{}
	return !old && !known
}

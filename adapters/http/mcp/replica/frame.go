package replica

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

// freshness is how old a message may be, or how far ahead the clock of its sender.
const freshness = 30 * time.Second

// kind is what a frame is for.
type kind string

const (
	// From the replica that got a request to the one that owns its session.
	kindRequest kind = "request"
	// Back from there.
	kindBody kind = "body" // asks for the next piece of a large body
	kindPart kind = "part" // of the response
	// Both ways.
	kindBeat   kind = "beat"   // while a call is under way
	kindCancel kind = "cancel" // the client has gone, or the sender cannot answer

	// The answers to all of these.
	kindDone  kind = "done"
	kindGone  kind = "gone"  // there is no such call, or it has ended
	kindStale kind = "stale" // by the clock of the receiver
)

// frame is one message between two replicas. No token is in it (R3).
type frame struct {
	Kind    kind      `json:"kind"`
	ID      string    `json:"id"` // its answer is sealed for it
	From    string    `json:"from"`
	At      time.Time `json:"at"`
	Call    string    `json:"exchange,omitempty"`
	Request *request  `json:"request,omitempty"`
	Offset  int       `json:"offset,omitempty"` // in the body that is asked for
	Part    *part     `json:"part,omitempty"`

	payload []byte // of a body or a response, behind the JSON
}

// request is what the owner of a session has to know of a request.
type request struct {
	Endpoint Endpoint    `json:"endpoint"`
	Method   string      `json:"method"`
	Session  string      `json:"session"` // its id in the replica that owns it
	Header   http.Header `json:"header"`
	Length   int         `json:"length"` // of the body, of which the payload is the beginning
	Caller   caller      `json:"caller"`
}

// Endpoint tells the two bindings with sessions apart.
type Endpoint string

const (
	StreamableHTTP Endpoint = "mcp"
	SSEMessage     Endpoint = "message" // of HTTP+SSE
)

// part is a piece of a response; the first one has a status.
type part struct {
	Number int         `json:"number"`
	Status int         `json:"status,omitempty"`
	Header http.Header `json:"header,omitempty"`
	Last   bool        `json:"last,omitempty"`
	Failed bool        `json:"failed,omitempty"` // the handler has panicked
}

// caller is an oauth.Caller in a frame.
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

// seal makes a message of a frame, which only the given name can open.
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

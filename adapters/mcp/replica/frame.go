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

// freshness is the maximum difference between the time in a message and the clock of its receiver.
const freshness = 30 * time.Second

// kind is the type of a frame.
type kind string

const (
	// To the owner of the session.
	kindRequest kind = "request"
	// From the owner of the session.
	kindBody kind = "body" // requests the next chunk of a large body
	kindPart kind = "part" // of the response
	// In both directions.
	kindHeartbeat kind = "beat"
	kindCancel    kind = "cancel" // the client has gone, or the sender cannot answer

	// Answers.
	kindDone  kind = "done"
	kindGone  kind = "gone"  // the call is unknown or has ended
	kindStale kind = "stale" // the message is older than freshness
)

// frame is a message between two replicas. It contains no token.
type frame struct {
	Kind    kind      `json:"kind"`
	ID      string    `json:"id"` // the answer is sealed for it
	From    string    `json:"from"`
	At      time.Time `json:"at"`
	Call    string    `json:"exchange,omitempty"`
	Request *request  `json:"request,omitempty"`
	Offset  int       `json:"offset,omitempty"` // of the requested chunk of the body
	Part    *part     `json:"part,omitempty"`

	payload []byte // of a body or a response; it follows the JSON
}

// request is a forwarded request.
type request struct {
	Endpoint Endpoint    `json:"endpoint"`
	Method   string      `json:"method"`
	Session  string      `json:"session"` // its id in the owner
	Header   http.Header `json:"header"`
	Length   int         `json:"length"` // of the body; the payload is its first chunk
	Caller   caller      `json:"caller"`
}

// Endpoint is the transport of a request in a session.
type Endpoint string

const (
	StreamableHTTP Endpoint = "mcp"
	SSEMessage     Endpoint = "message" // of HTTP+SSE
)

// part is a part of a response; the first one has a status.
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
	ClientName, Account    string `json:",omitempty"`
	Roles, Scopes          []string
	ExpiresAt              time.Time
	Tools                  string `json:",omitempty"`
}

func callerFrom(c *oauth.Caller) caller {
	return caller{
		Grant:      c.Grant,
		Client:     c.Client.String(),
		ClientName: c.ClientName,
		Subject:    c.Subject,
		Account:    c.Account,
		Roles:      c.Roles,
		Scopes:     c.Scopes.Values(),
		ExpiresAt:  c.ExpiresAt,
		Tools:      c.Tools.String(),
	}
}

func (c caller) restore() oauth.Caller {
	return oauth.Caller{
		Grant:      c.Grant,
		Client:     oauth.RestoreClientID(c.Client),
		ClientName: c.ClientName,
		Subject:    c.Subject,
		Account:    c.Account,
		Roles:      c.Roles,
		Scopes:     oauth.NewScopes(c.Scopes...),
		ExpiresAt:  c.ExpiresAt,
		Tools:      oauth.RestoreToolDigests(c.Tools),
	}
}

// seal returns the frame as a message that only the given name can open.
func (f frame) seal(keys seal.KeyRing, name string) ([]byte, error) {
	head, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encoding a frame: %w", err)
	}
	return keys.SealMessage(name, bytes.Join([][]byte{head, f.payload}, []byte("\n"))) // the JSON has no newline
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

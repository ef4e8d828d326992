package message

import (
	"encoding/json"
	"net/http"
)

// Outcome reads what the response to a call says while the response passes: JSON, or a stream of
// events that ends with it. A batch has no single outcome.
type Outcome struct {
	Found   bool   // the response was complete
	IsError bool   // it is a JSON-RPC error
	Code    *int64 // of the error
	Failed  bool   // it is a result with isError, of a tool

	memory Reservation
	whole  Buffer
	events Events
}

// NewOutcome returns an Outcome that uses the memory for a long response, or for each long event.
// Without memory, it finds nothing.
func NewOutcome(memory Reservation) *Outcome {
	o := &Outcome{memory: memory}
	o.whole.Reserve = o.memory.Extend
	o.events = Events{Reserve: o.memory.Extend, Emit: func(event []byte, _ error) error {
		text, _ := ParseEvent(event)
		o.find(text)
		o.memory.Release()
		return nil
	}}
	return o
}

// Read reads a piece of the response.
func (o *Outcome) Read(header http.Header, p []byte) {
	switch {
	case o.Found:
	case IsEventStream(header):
		_ = o.events.Read(p) // Emit never fails
	default:
		o.whole.Keep(p)
	}
}

// End reads a response that is not a stream, after its last piece.
func (o *Outcome) End() {
	if !o.Found {
		o.find(o.whole.Bytes())
	}
	o.whole = Buffer{}
	o.memory.Release()
}

// find takes the outcome from a response. Requests and notifications have none.
func (o *Outcome) find(text []byte) {
	found, isBatch := decodeAnyway(text)
	if isBatch || len(found) != 1 || !found[0].IsResponse() {
		return
	}
	var failure struct{ Code *int64 }
	var result struct{ IsError bool }
	if json.Unmarshal(found[0].Error, &failure) != nil {
		failure.Code = nil
	}
	_ = json.Unmarshal(found[0].Result, &result) // a tool that fails says so in an object
	o.Found, o.IsError, o.Code, o.Failed = true, found[0].Error != nil, failure.Code, result.IsError
}

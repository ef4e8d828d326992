package upstream

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
)

const (
	endpoint = "endpoint"
	// maxHeld bounds the bytes of an event that are held back until its type is known.
	maxHeld = 8 << 10
)

// errEndpoint is the error of a stream that hides an endpoint event from its reader.
var errEndpoint = errors.New("an endpoint event is too long, or has unusual line ends")

// rewriter is a stream of HTTP+SSE with another address in each endpoint event. All other bytes
// pass unchanged, and an event as soon as it is complete.
type rewriter struct {
	io.Closer
	from    io.Reader
	rewrite func(address string) (string, error)

	split   jsonrpc.Splitter
	held    []byte // of the event, until its end
	long    bool   // the event is too long to be held, and passes
	line    []byte // the beginning of the line of a long event
	ready   bytes.Buffer
	scanned []byte // the last bytes, which can begin what hidden finds
	failed  error
}

// newRewriter returns a reader of the stream that calls rewrite with the address of each endpoint
// event. After an error of rewrite the stream ends with it.
func newRewriter(stream io.ReadCloser, rewrite func(address string) (string, error)) *rewriter {
	return &rewriter{Closer: stream, from: stream, rewrite: rewrite}
}

// Read implements io.Reader.
func (r *rewriter) Read(p []byte) (int, error) {
	for r.ready.Len() == 0 {
		if r.failed != nil {
			return 0, r.failed
		}
		n, err := r.from.Read(p) // as scratch space
		if failed := r.write(p[:n]); failed != nil {
			r.failed = failed
		} else if err != nil {
			r.failed = r.end(err)
		}
	}
	return r.ready.Read(p)
}

// hidden finds an endpoint event for readers that end lines as Unicode does, as some libraries do.
var hidden = regexp.MustCompile(`(?:[\v\f\x1c-\x1e]|\x{85}|\x{2028}|\x{2029})event: ?endpoint`)

// maxHidden is longer than a match of hidden.
const maxHidden = 32

func (r *rewriter) write(p []byte) error {
	r.scanned = append(r.scanned, p...)
	if bytes.Contains(r.scanned, []byte(endpoint)) && hidden.Match(r.scanned) {
		return errEndpoint
	}
	r.scanned = append(r.scanned[:0], r.scanned[max(0, len(r.scanned)-maxHidden):]...)
	for len(p) > 0 {
		length, ends := r.split.Next(p)
		if err := r.piece(p[:length], ends); err != nil {
			return err
		}
		p = p[length:]
	}
	return nil
}

func (r *rewriter) piece(p []byte, ends jsonrpc.Boundary) error {
	if r.long {
		return r.passLong(p, ends)
	}
	r.held = append(r.held, p...)
	switch {
	case ends == jsonrpc.EventEnd:
		return r.flush()
	case ends == jsonrpc.LineEnd && (r.held[0] == ':' || string(r.held) == "\n"): // before an event
		r.ready.Write(r.held)
		r.held = r.held[:0]
	case len(r.held) > maxHeld:
		return r.begin(ends)
	}
	return nil
}

// flush writes the event that is held.
func (r *rewriter) flush() error {
	defer func() { r.held = r.held[:0] }()
	if !slices.ContainsFunc(jsonrpc.EventLines(r.held), isEndpoint) {
		r.ready.Write(r.held)
		return nil
	}
	data, _ := jsonrpc.ParseEvent(r.held)
	address, err := r.rewrite(string(data))
	if err != nil {
		return err
	}
	r.ready.Write(jsonrpc.Event(endpoint, "", []byte(address)))
	return nil
}

// begin passes the beginning of a long event.
func (r *rewriter) begin(ends jsonrpc.Boundary) error {
	lines := jsonrpc.EventLines(r.held)
	if slices.ContainsFunc(lines, isEndpoint) {
		return errEndpoint
	}
	last := lines[len(lines)-1]
	r.line = append(r.line[:0], last[:min(len(last), maxHidden)]...)
	if ends != jsonrpc.Nothing {
		r.line = r.line[:0]
	}
	r.ready.Write(r.held)
	r.held, r.long = r.held[:0], true
	return nil
}

// passLong fails before the end of an event whose type turns out to be endpoint, so
// that no reader acts on it.
func (r *rewriter) passLong(p []byte, ends jsonrpc.Boundary) error {
	r.line = append(r.line, p[:min(len(p), max(0, maxHidden-len(r.line)))]...)
	if ends != jsonrpc.Nothing {
		if isEndpoint(r.line) {
			return errEndpoint
		}
		r.line = r.line[:0]
	}
	r.long = ends != jsonrpc.EventEnd
	r.ready.Write(p)
	return nil
}

func isEndpoint(line []byte) bool {
	name, kind := jsonrpc.EventField(line)
	return string(name) == "event" && string(kind) == endpoint
}

// end handles the end of the stream. An event without an end is none, but some readers accept it.
func (r *rewriter) end(cause error) error {
	if r.long && isEndpoint(r.line) {
		return errEndpoint
	}
	if len(r.held) == 0 {
		return cause
	}
	if err := r.flush(); err != nil {
		return err
	}
	return cause
}

package features_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The revisions of MCP; each has a different transport.
const (
	httpSSE   = "2024-11-05" // one stream carries every response; messages are posted separately
	batching  = "2025-03-26" // adds sessions
	headers   = "2025-06-18" // adds MCP-Protocol-Version
	sessions  = "2025-11-25" // the last with sessions
	stateless = "2026-07-28"
)

// revisions makes a subtree for each of the given revisions, or for all.
func revisions(some ...string) []TableEntry {
	if len(some) == 0 {
		some = []string{httpSSE, batching, headers, sessions, stateless}
	}
	var entries []TableEntry
	for _, revision := range some {
		entries = append(entries, Entry(revision, Label("MCP "+revision), revision))
	}
	return entries
}

// Conversation implements one revision of MCP over plain HTTP.
type Conversation struct {
	World    *World
	Revision string
	Access   string // may change during the conversation, as after a refresh

	session string  // its id, from batching to sessions
	stream  *Stream // in httpSSE
	target  string  // URL for messages
}

// Talk returns a conversation that has not sent anything yet.
func (w *World) Talk(revision, access string) *Conversation {
	return &Conversation{
		World:    w,
		Revision: revision,
		Access:   access,
		target:   w.MCP(),
	}
}

// Converse starts a conversation as the revision requires.
func (w *World) Converse(ctx context.Context, revision, access string) *Conversation {
	GinkgoHelper()
	c := w.Talk(revision, access)
	if revision == stateless {
		return c
	}
	if revision == httpSSE {
		c.stream = c.Listen(ctx)
		c.target = w.Issuer + c.stream.Next("endpoint")
	}
	opened := c.Post(ctx, "initialize", params{
		"protocolVersion": revision, "capabilities": params{"elicitation": params{}},
		"clientInfo": params{"name": "spec", "version": "1"},
	})
	c.session = opened.Header.Get("Mcp-Session-Id")
	Expect(c.read(opened).Result.ProtocolVersion).To(Equal(revision), opened.Text)
	Expect(c.Post(ctx, "notifications/initialized", nil).StatusCode).To(Equal(http.StatusAccepted))
	return c
}

type params = map[string]any

// Ask sends a request and reads its response.
func (c *Conversation) Ask(ctx context.Context, method string, p params) Answer {
	GinkgoHelper()
	return c.read(c.Post(ctx, method, p))
}

func (c *Conversation) Use(ctx context.Context, tool string, arguments params) Answer {
	GinkgoHelper()
	return c.Ask(ctx, "tools/call", params{"name": tool, "arguments": arguments})
}

func (c *Conversation) Read(ctx context.Context, uri string) Answer {
	GinkgoHelper()
	return c.Ask(ctx, "resources/read", params{"uri": uri})
}

// Post sends a message and returns the HTTP response; change may alter the request.
func (c *Conversation) Post(ctx context.Context, method string, p params, change ...func(*http.Request)) Response {
	GinkgoHelper()
	r := c.message(ctx, method, p)
	for _, apply := range change {
		apply(r)
	}
	return Send(r)
}

// Request returns a request without a message: to listen, or to end the session.
func (c *Conversation) Request(ctx context.Context, method string) *http.Request {
	GinkgoHelper()
	r := must(http.NewRequestWithContext(ctx, method, c.World.MCP(), nil))
	r.Header.Set("Accept", "text/event-stream")
	c.introduce(r)
	return r
}

// Listen opens the stream for messages of the server; httpSSE has only one stream.
func (c *Conversation) Listen(ctx context.Context) *Stream {
	GinkgoHelper()
	if c.stream != nil {
		return c.stream
	}
	return Follow(c.Request(ctx, http.MethodGet))
}

func (c *Conversation) message(ctx context.Context, method string, p params) *http.Request {
	GinkgoHelper()
	if c.Revision == stateless {
		p = withMeta(p)
	}
	members := params{"jsonrpc": "2.0", "method": method}
	if p != nil { // null is none
		members["params"] = p
	}
	if !strings.HasPrefix(method, "notifications/") {
		members["id"] = 7
	}
	body := must(json.Marshal(members))
	r := must(http.NewRequestWithContext(ctx, http.MethodPost, c.target, strings.NewReader(string(body))))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	c.introduce(r)
	c.summarize(r, method, p)
	return r
}

// withMeta adds the metadata that a session would hold to each message.
func withMeta(p params) params {
	said := params{"_meta": params{
		"io.modelcontextprotocol/protocolVersion":    stateless,
		"io.modelcontextprotocol/clientInfo":         params{"name": "spec", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": params{},
	}}
	for name, value := range p {
		said[name] = value
	}
	return said
}

func (c *Conversation) introduce(r *http.Request) {
	if c.Access != "" {
		r.Header.Set("Authorization", "Bearer "+c.Access)
	}
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.Revision == stateless || c.session != "" && c.Revision >= headers {
		r.Header.Set("MCP-Protocol-Version", c.Revision)
	}
}

// summarize copies the routing fields of the body to headers.
func (c *Conversation) summarize(r *http.Request, method string, p params) {
	if c.Revision != stateless {
		return
	}
	r.Header.Set("Mcp-Method", method)
	for _, name := range []string{"name", "uri"} {
		if value, ok := p[name].(string); ok {
			r.Header.Set("Mcp-Name", value)
		}
	}
}

// Answer holds the fields of a JSON-RPC response that the specs check.
type Answer struct {
	Result struct {
		ProtocolVersion string
		Tools           []struct{ Name string }
		Contents        []struct{ Text string }
		Content         []struct{ Text string }
		IsError         bool
	}
	Error struct {
		Code    int
		Message string
	}
}

// Text returns the text of a tool's result, or the error.
func (a Answer) Text() string {
	if len(a.Result.Content) > 0 {
		return a.Result.Content[0].Text
	}
	return a.Error.Message
}

// Slug returns the address of the article in a tool's result.
func (a Answer) Slug() string {
	GinkgoHelper()
	var article struct{ Slug string }
	Expect(json.Unmarshal([]byte(a.Text()), &article)).To(Succeed(), a.Text())
	Expect(article.Slug).NotTo(BeEmpty())
	return article.Slug
}

func (a Answer) Tools() (names []string) {
	for _, tool := range a.Result.Tools {
		names = append(names, tool.Name)
	}
	return names
}

func (c *Conversation) read(sent Response) (answer Answer) {
	GinkgoHelper()
	text := sent.Text
	switch {
	case c.Revision == httpSSE:
		Expect(sent.StatusCode).To(Equal(http.StatusAccepted), sent.Text)
		Expect(sent.Text).To(BeEmpty())
		text = c.stream.Next("message")
	case strings.HasPrefix(sent.Header.Get("Content-Type"), "text/event-stream"):
		for event := range events(strings.NewReader(sent.Text)) {
			text = event.Data
		}
	}
	Expect(json.Unmarshal([]byte(text), &answer)).To(Succeed(), "%d %s", sent.StatusCode, sent.Text)
	return answer
}

// patience is a timeout for slow machines; the awaited events normally happen immediately.
const patience = time.Minute

// Event is a server-sent event.
type Event struct{ Name, Data string }

// events reads events until the end, and skips events without data, which only set the id to resume
// from.
func events(from io.Reader) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		var event Event
		for lines := bufio.NewScanner(from); lines.Scan(); {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch {
			case field == "event":
				event.Name = value
			case field == "data":
				event.Data = value
			case lines.Text() != "": // an id, or a comment
			case event.Data != "" && !yield(event):
				return
			default:
				event = Event{}
			}
		}
	}
}

// Stream is an open response; Events is closed at its end.
type Stream struct {
	*http.Response
	Events chan Event
}

// Follow opens a stream, which ends with the request's context at the latest.
func Follow(r *http.Request) *Stream {
	GinkgoHelper()
	answer := must(noRedirects.Do(r))
	Expect(answer.StatusCode).To(Equal(http.StatusOK))
	Expect(answer.Header.Get("Content-Type")).To(HavePrefix("text/event-stream"))
	s := &Stream{answer, make(chan Event)}
	go s.read(r.Context())
	return s
}

func (s *Stream) read(ctx context.Context) {
	defer close(s.Events)
	defer func() { _ = s.Body.Close() }()
	for event := range events(s.Body) {
		select {
		case s.Events <- event:
		case <-ctx.Done():
			return
		}
	}
}

// Next returns the data of the next event, which must have this name.
func (s *Stream) Next(name string) string {
	GinkgoHelper()
	var event Event
	Eventually(s.Events).WithTimeout(patience).Should(Receive(&event))
	Expect(event.Name).To(Equal(name))
	return event.Data
}

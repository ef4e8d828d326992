package guard

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/audit"
	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Audit records each request of an authenticated caller once: those that reach a server of the SDK
// in its middleware, with the exact outcome, and all others when their HTTP response ends.
type Audit struct {
	record   audit.Recorder // nil records nothing
	label    func(oauth.ClientID) string
	resource string
	now      func() time.Time
	bodies   *message.BodyMemory // also for long responses
}

// masking masks tokens of this server in what a client has chosen.
func masking(record audit.Recorder) audit.Recorder {
	if record == nil {
		return nil
	}
	return func(ctx context.Context, call audit.Call) {
		call.Client, call.Method = oauth.MaskTokens(call.Client), oauth.MaskTokens(call.Method)
		call.Name, call.App = oauth.MaskTokens(call.Name), oauth.MaskTokens(call.App)
		if call.Arguments != nil {
			call.Arguments = []byte(oauth.MaskTokens(string(call.Arguments)))
		}
		record(ctx, call)
	}
}

// IsOn reports whether calls are recorded.
func (a Audit) IsOn() bool { return a.record != nil }

// Record records a call.
func (a Audit) Record(ctx context.Context, call audit.Call) { a.record(ctx, call) }

// IsRecorded reports whether the requests of a method are calls.
func IsRecorded(method string) bool {
	return method != "ping" && !strings.HasPrefix(method, "notifications/")
}

// NewCall describes a request that began then and ends now. The sender is nil for one without HTTP.
func (a Audit) NewCall(sender *response.Sender, request message.Request, began time.Time) audit.Call {
	call := audit.Call{
		Time:      began,
		Resource:  a.resource,
		Duration:  a.now().Sub(began),
		Arguments: request.Arguments,
		Method:    audit.Shorten(request.Method, audit.MaxMethod),
		Name:      audit.Shorten(request.Name, audit.MaxName),
	}
	if sender != nil {
		call.Request, call.Subject, call.Grant = sender.RequestID, sender.Caller.Subject, sender.Caller.Grant
		call.Account = audit.Shorten(sender.Caller.Account, audit.MaxName)
		call.App = audit.Shorten(sender.Caller.ClientName, audit.MaxName)
		call.Client = audit.Shorten(a.label(sender.Caller.Client), audit.MaxClient)
	}
	return call
}

// httpAudit audits the requests in one POST.
type httpAudit struct {
	Audit
	out     *response.Writer
	body    message.Body
	began   time.Time
	outcome *message.Outcome
	ended   time.Time // of the JSON-RPC response; the zero value for one that is not a stream
}

// begin returns nil without an audit, and for a request without a body.
func (a Audit) begin(out *response.Writer, r *http.Request) *httpAudit {
	if !a.IsOn() || r.Method != http.MethodPost {
		return nil
	}
	out.Identity().RequestID = connection.From(r.Context()).Request()
	h := &httpAudit{
		Audit:   a,
		out:     out,
		began:   a.now(),
		outcome: message.NewOutcome(a.bodies.Reserve(out.Identity().Caller.Subject)),
	}
	out.Observe(h.observe)
	return h
}

func (h *httpAudit) read(b message.Body) {
	if h != nil {
		h.body = b
	}
}

func (h *httpAudit) observe(header http.Header, p []byte) {
	if h.outcome.Found || header.Get("Content-Encoding") != "" {
		return
	}
	if h.outcome.Read(header, p); h.outcome.Found {
		h.ended = h.now()
	}
}

// end records the requests that the SDK has not.
func (h *httpAudit) end(ctx context.Context) {
	if h == nil {
		return
	}
	if h.outcome.End(); h.out.Identity().Audited.Load() {
		return
	}
	status := h.out.Status()
	// It has recorded the request, or will soon.
	isWithSDK := !h.out.IsRelayed() && (!h.outcome.IsError || h.out.Identity().Forwarded)
	if isWithSDK && status < http.StatusBadRequest {
		return
	}
	var requests []message.Request
	if len(h.body.Messages) > 0 && (h.body.Refused == nil || h.body.Refused.ByName) {
		requests = h.body.Requests()
	} else if status >= http.StatusBadRequest {
		requests = make([]message.Request, 1)
	}
	for _, request := range requests {
		if !IsRecorded(request.Method) {
			continue
		}
		call := h.NewCall(&h.out.Identity().Sender, request, h.began)
		if !h.ended.IsZero() {
			call.Duration = h.ended.Sub(h.began)
		}
		call.Status, call.Code, call.Rule = status, h.outcome.Code, connection.From(ctx).Rule()
		call.Outcome = h.outcomeOf(call)
		h.record(ctx, call)
	}
}

// outcomeOf judges a 4xx by who answered: without a rule it is from the MCP server elsewhere.
func (h *httpAudit) outcomeOf(call audit.Call) audit.Outcome {
	isClientError := call.Status >= http.StatusBadRequest && call.Status < http.StatusInternalServerError
	switch {
	case h.body.Refused != nil && h.body.Refused.ByName, isClientError && (call.Rule != "" || !h.out.IsRelayed()):
		return audit.Refused
	case h.outcome.IsError, call.Status >= http.StatusBadRequest, h.out.IsAborted():
		return audit.Failed
	case h.outcome.Failed:
		return audit.ToolFailed
	case h.outcome.Found:
		return audit.OK
	}
	return audit.Unknown
}

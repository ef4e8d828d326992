package guard

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/stream"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/audit"
	"github.com/pasteport/pasteport/domain/oauth"
)

// IsRecorded reports whether the audit records the requests of a method.
func IsRecorded(method string) bool {
	return method != "ping" && !strings.HasPrefix(method, "notifications/")
}

// Record records a call. It masks tokens of this server in what a client has chosen.
func (g *Guard) Record(ctx context.Context, call audit.Call) {
	call.Client, call.Method = oauth.MaskTokens(call.Client), oauth.MaskTokens(call.Method)
	call.Name, call.App = oauth.MaskTokens(call.Name), oauth.MaskTokens(call.App)
	if call.Arguments != nil {
		call.Arguments = []byte(oauth.MaskTokens(string(call.Arguments)))
	}
	g.options.Audit(ctx, call)
}

// NewCall describes a request that began then and ends now. The sender is nil for one without HTTP.
func (g *Guard) NewCall(sender *stream.Sender, request message.Request, began time.Time) audit.Call {
	call := audit.Call{
		Time:      began,
		Resource:  g.options.Resource.String(),
		Duration:  g.options.Now().Sub(began),
		Arguments: request.Arguments,
		Method:    audit.Shorten(request.Method, audit.MaxMethod),
		Name:      audit.Shorten(request.Name, audit.MaxName),
	}
	if sender != nil {
		call.Request, call.Subject, call.Grant = sender.RequestID, sender.Caller.Subject, sender.Caller.Grant
		call.Account = audit.Shorten(sender.Caller.Account, audit.MaxName)
		call.App = audit.Shorten(sender.Caller.ClientName, audit.MaxName)
		call.Client = audit.Shorten(g.options.ClientLabel(sender.Caller.Client), audit.MaxClient)
	}
	return call
}

// httpAudit audits the requests in one POST. Each request of an authenticated caller is recorded
// once: those that reach a server of the SDK in its middleware, with the exact outcome, and all
// others when their HTTP response ends.
type httpAudit struct {
	*Guard
	out     *stream.Writer
	began   time.Time
	outcome *message.Outcome
	ended   time.Time // of the JSON-RPC response; the zero value for one that is not a stream
}

// beginAudit returns nil without an audit, and for a request without a body.
func (g *Guard) beginAudit(out *stream.Writer, r *http.Request) *httpAudit {
	if g.options.Audit == nil || r.Method != http.MethodPost {
		return nil
	}
	out.Identity().RequestID = attempt.From(r.Context()).Request()
	h := &httpAudit{
		Guard:   g,
		out:     out,
		began:   g.options.Now(),
		outcome: message.NewOutcome(g.options.Bodies.Reserve(out.Identity().Caller.Subject)),
	}
	out.Observe(func(header http.Header, p []byte) {
		if h.outcome.Found || header.Get("Content-Encoding") != "" {
			return
		}
		if h.outcome.Read(header, p); h.outcome.Found {
			h.ended = h.options.Now()
		}
	})
	return h
}

// end records the requests of a body that the SDK has not.
func (h *httpAudit) end(ctx context.Context, b message.Body) {
	if h == nil {
		return
	}
	if h.outcome.End(); h.out.Identity().Audited.Load() {
		return
	}
	status := h.out.Status()
	// Below status 400, the SDK has recorded the requests, here or at another replica. Only a
	// JSON-RPC error that was not forwarded is the guard's own.
	isWithSDK := !h.out.IsRelayed() && (!h.outcome.IsError || h.out.Identity().Forwarded)
	if isWithSDK && status < http.StatusBadRequest {
		return
	}
	var requests []message.Request
	refusedByName := b.Refused != nil && b.Refused.ByName
	if len(b.Messages) > 0 && (b.Refused == nil || refusedByName) {
		requests = b.Requests()
	} else if status >= http.StatusBadRequest {
		requests = make([]message.Request, 1) // one that could not be read
	}
	for _, request := range requests {
		if !IsRecorded(request.Method) {
			continue
		}
		call := h.NewCall(&h.out.Identity().Sender, request, h.began)
		if !h.ended.IsZero() {
			call.Duration = h.ended.Sub(h.began)
		}
		call.Status, call.Code, call.Rule = status, h.outcome.Code, attempt.From(ctx).Rule()
		isClientError := status >= http.StatusBadRequest && status < http.StatusInternalServerError
		switch { // a 4xx without a rule is from the MCP server elsewhere
		case refusedByName, isClientError && (call.Rule != "" || !h.out.IsRelayed()):
			call.Outcome = audit.Refused
		case h.outcome.IsError, status >= http.StatusBadRequest, h.out.IsAborted():
			call.Outcome = audit.Failed
		case h.outcome.Failed:
			call.Outcome = audit.ToolFailed
		case h.outcome.Found:
			call.Outcome = audit.OK
		default:
			call.Outcome = audit.Unknown
		}
		h.Record(ctx, call)
	}
}

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/audit"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// auditor records each request of an authenticated caller once: those that reach the SDK in its
// middleware, with the exact outcome, and all others when their HTTP response ends.
type auditor struct {
	record   audit.Recorder
	label    func(oauth.ClientID) string
	resource string
	now      func() time.Time
	relays   bool // the MCP server is elsewhere
}

// newAuditor returns nil without an audit.
func newAuditor(o Options, relays bool) *auditor {
	if o.Audit == nil {
		return nil
	}
	return &auditor{
		record:   o.Audit,
		label:    o.ClientLabel,
		resource: o.Resource.String(),
		now:      o.Now,
		relays:   relays,
	}
}

func isRecorded(method string) bool {
	return method != "ping" && !strings.HasPrefix(method, "notifications/")
}

func (a *auditor) newCall(sender *response.Sender, request jsonrpc.Request, began time.Time) audit.Call {
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
		if a.label != nil {
			call.Client = audit.Shorten(a.label(sender.Caller.Client), audit.MaxClient)
		}
	}
	return call
}

// receive is the outermost middleware of the SDK's server.
func (a *auditor) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (result sdk.Result, err error) {
		if !isRecorded(method) {
			return next(ctx, method, req)
		}
		began, returned := a.now(), false
		defer func() { // also after a panic of a tool
			sender := senderOf(req)
			call := a.newCall(sender, requestOf(method, req), began)
			call.Outcome = audit.Failed
			if returned {
				setResult(&call, result, err)
			}
			if sender != nil {
				sender.Audited.Store(true)
			}
			a.record(ctx, call)
		}()
		result, err = next(ctx, method, req)
		returned = true
		return result, err
	}
}

// requestOf describes a request that the SDK has decoded.
func requestOf(method string, req sdk.Request) jsonrpc.Request {
	request := jsonrpc.Request{Method: method}
	switch params := req.GetParams().(type) {
	case *sdk.CallToolParamsRaw:
		request.Name, request.Arguments = params.Name, jsonrpc.Canonical(params.Arguments)
	case *sdk.GetPromptParams:
		request.Name = params.Name
		if params.Arguments != nil {
			raw, _ := json.Marshal(params.Arguments) // strings always encode
			request.Arguments = jsonrpc.Canonical(raw)
		}
	case *sdk.ReadResourceParams:
		request.Arguments = jsonrpc.ResourceArguments(params.URI)
	}
	return request
}

func setResult(call *audit.Call, result sdk.Result, err error) {
	var failure *rpc.Error
	var refused *policyError
	switch tool, isTool := result.(*sdk.CallToolResult); {
	case errors.As(err, &refused):
		call.Outcome, call.Rule = audit.Refused, refused.rule
	case err != nil:
		call.Outcome = audit.Failed
	case isTool && tool != nil && tool.IsError:
		call.Outcome = audit.ToolFailed
	default:
		call.Outcome = audit.OK
	}
	if errors.As(err, &failure) {
		call.Code = &failure.Code
	}
}

// policyError is a refusal of the policy.
type policyError struct {
	rule string
	sent *rpc.Error
}

// Error implements error.
func (e *policyError) Error() string { return e.sent.Error() }

// Unwrap returns the error that the client gets.
func (e *policyError) Unwrap() error { return e.sent }

// httpAudit audits the requests in one POST.
type httpAudit struct {
	*auditor
	out     *response.Writer
	message jsonrpc.Message
	began   time.Time
	outcome jsonrpc.Outcome
	ended   time.Time // of the JSON-RPC response
}

// begin returns nil without an audit, and for a request without a body.
func (a *auditor) begin(out *response.Writer, r *http.Request) *httpAudit {
	if a == nil || r.Method != http.MethodPost {
		return nil
	}
	out.Identity().RequestID = trace.From(r.Context()).Request()
	h := &httpAudit{auditor: a, out: out, began: a.now()}
	out.Observe(h.observe)
	return h
}

func (h *httpAudit) read(m jsonrpc.Message) {
	if h != nil {
		h.message = m
	}
}

func (h *httpAudit) observe(header http.Header, p []byte) {
	if h.outcome.Found || header.Get("Content-Encoding") != "" {
		return
	}
	h.outcome.Events = strings.HasPrefix(strings.ToLower(header.Get("Content-Type")), jsonrpc.EventStream)
	if _, _ = h.outcome.Write(p); h.outcome.Found {
		h.ended = h.now()
	}
}

// end records the requests that the SDK has not.
func (h *httpAudit) end(ctx context.Context) {
	if h == nil || h.out.Identity().Audited.Load() {
		return
	}
	status := h.out.Status()
	// It has recorded the request, or will soon.
	isWithSDK := !h.relays && (!h.outcome.IsError || h.out.Identity().Forwarded)
	if isWithSDK && status < http.StatusBadRequest {
		return
	}
	var requests []jsonrpc.Request
	if isReadable := h.message.Decoded && (h.message.Refused == nil || h.message.Refused.Readable); isReadable {
		requests = jsonrpc.Requests(h.message.Body)
	} else if status >= http.StatusBadRequest {
		requests = make([]jsonrpc.Request, 1)
	}
	for _, request := range requests {
		if !isRecorded(request.Method) {
			continue
		}
		call := h.newCall(&h.out.Identity().Sender, request, h.began)
		if h.outcome.Found {
			call.Duration = h.ended.Sub(h.began)
		}
		call.Status, call.Code, call.Rule = status, h.outcome.Code, trace.From(ctx).Rule()
		call.Outcome = h.outcomeOf(call)
		h.record(ctx, call)
	}
}

// outcomeOf judges a 4xx by who answered: without a rule it is from the MCP server elsewhere.
func (h *httpAudit) outcomeOf(call audit.Call) audit.Outcome {
	isClientError := call.Status >= http.StatusBadRequest && call.Status < http.StatusInternalServerError
	switch {
	case h.message.Refused != nil && h.message.Refused.Readable, isClientError && (call.Rule != "" || !h.relays):
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

package sdkserver

import (
	"context"
	"encoding/json"
	"errors"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/audit"
)

// auditCalls is the outermost middleware of the SDK's server.
func (s *Server) auditCalls(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (result sdk.Result, err error) {
		if !guard.IsRecorded(method) {
			return next(ctx, method, req)
		}
		began, returned := s.options.Now(), false
		defer func() { // also after a panic of a tool
			sender := senderOf(req)
			call := s.NewCall(sender, requestOf(method, req), began)
			call.Outcome = audit.Failed
			if returned {
				setResult(&call, result, err)
			}
			if sender != nil {
				sender.Audited.Store(true)
			}
			s.Record(ctx, call)
		}()
		result, err = next(ctx, method, req)
		returned = true
		return result, err
	}
}

// requestOf describes a request that the SDK has decoded.
func requestOf(method string, req sdk.Request) message.Request {
	request := message.Request{Method: method}
	switch params := req.GetParams().(type) {
	case *sdk.CallToolParamsRaw:
		request.Name, request.Arguments = params.Name, message.Canonical(params.Arguments)
	case *sdk.GetPromptParams:
		request.Name = params.Name
		if params.Arguments != nil {
			raw, _ := json.Marshal(params.Arguments) // strings always encode
			request.Arguments = message.Canonical(raw)
		}
	case *sdk.ReadResourceParams:
		request.Arguments = message.ResourceArguments(params.URI)
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

func (e *policyError) Error() string { return e.sent.Error() }

// Unwrap returns the error that the client gets.
func (e *policyError) Unwrap() error { return e.sent }

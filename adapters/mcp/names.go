package mcp

import (
	"net/http"
	"net/url"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pasteport/pasteport/adapters/mcp/gateway/filter"
	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// ruleNames is the rule of a refusal by a Policy, in the trace and the audit.
const ruleNames = "U26"

// codeNoResource is the code for an unknown resource before firstStateless.
const codeNoResource = -32002

// refuseNames returns the refusal of a message to the upstream that names what the caller may not
// use, nil for any other message.
func (s *Server) refuseNames(out *response.Writer, r *http.Request, m jsonrpc.Message) *jsonrpc.Refusal {
	code := int64(codeNoResource)
	if r.Header.Get(versionHeader) >= firstStateless {
		code = rpc.CodeInvalidParams
	}
	unknown := s.policy.unknown(out.Identity().Caller, m, code)
	if unknown == nil {
		return nil
	}
	s.options.Logger.InfoContext(r.Context(), "refused a message that names what its caller may not use",
		"rule", ruleNames)
	return jsonrpc.RefuseNames(m.Body, ruleNames, unknown.Code, unknown.Message)
}

// unknown returns the error for the first name that the caller may not use, nil for none.
func (p policy) unknown(caller oauth.Caller, m jsonrpc.Message, codeOfResource int64) *rpc.Error {
	for _, name := range m.Tools {
		if !p.tools.permits(caller, name) {
			return unknownTool(name)
		}
	}
	for _, name := range m.Prompts {
		if !p.prompts.permits(caller, name) {
			return unknownPrompt(name)
		}
	}
	for _, uri := range m.Resources {
		if !p.resources.permits(caller, uri) {
			return unknownResource(uri, codeOfResource)
		}
	}
	return nil
}

// writeRefused answers a refused message. With HTTP+SSE, clients read the errors of requests on
// their stream only.
func (s *Server) writeRefused(out *response.Writer, r *http.Request, m jsonrpc.Message) {
	if !m.Refused.Readable || r.URL.Path != s.path+messagePath {
		m.Refused.Write(out)
		return
	}
	if s.sendToStream(r, m.Refused.Errors) {
		out.WriteHeader(http.StatusAccepted)
		return
	}
	jsonrpc.WriteErrorFor(out, http.StatusBadRequest, m.ID, rpc.CodeInvalidParams,
		"Bad Request: the message names something that does not exist")
}

// messageStream is an open stream of HTTP+SSE.
type messageStream struct {
	out   *filter.Writer
	owner string
}

// sendToStream sends messages on the stream of this process to which a POST belongs, and reports
// whether there is one.
func (s *Server) sendToStream(r *http.Request, messages [][]byte) bool {
	found, _ := s.streams.Load(r.URL.Query().Encode())
	stream, ok := found.(*messageStream)
	if !ok || stream.owner != s.owner(&response.IdentityOf(r.Context()).Caller) {
		return false
	}
	sent, err := stream.out.Send(messages)
	return sent && err == nil
}

// lists returns what a caller may see.
func (p policy) lists(caller oauth.Caller) filter.Lists {
	of := func(allowed Policy) func(string) bool {
		if allowed == nil {
			return nil
		}
		return func(name string) bool { return allowed(caller, name) }
	}
	return filter.Lists{Tools: of(p.tools), Prompts: of(p.prompts), Resources: of(p.resources)}
}

// unfiltered is the text for a client whose response cannot be read.
const unfiltered = "The answer of the MCP server behind this gateway cannot be read, so it is not passed on"

// filtered calls deliver with a writer that filters the response of the upstream.
func (s *Server) filtered(w http.ResponseWriter, r *http.Request, m jsonrpc.Message,
	deliver func(http.ResponseWriter) error) error {
	ctx, caller := r.Context(), response.IdentityOf(r.Context()).Caller
	r.Header.Set("Accept-Encoding", "identity")
	memory := s.options.Bodies.Reserve(caller.Subject)
	defer memory.Release()
	stream, key := &messageStream{owner: s.owner(&caller)}, ""
	defer func() { s.streams.CompareAndDelete(key, stream) }()
	report := func(reason error) {
		s.options.Logger.WarnContext(ctx, "cannot filter a response of the upstream", "rule", "U27", "error", reason)
	}
	stream.out = filter.NewWriter(w, filter.Options{
		Lists: s.policy.lists(caller), Reserve: memory.Extend, Release: memory.Release,
		Announced: func(address string) {
			if target, err := url.Parse(address); err == nil {
				s.streams.CompareAndDelete(key, stream)
				key = target.Query().Encode()
				s.streams.Store(key, stream)
			}
		},
		Refuse: func(w http.ResponseWriter, reason error) {
			report(reason)
			trace.From(ctx).Refuse(oauth.Refuse(oauth.TemporarilyUnavailable, "U27", unfiltered))
			rpcFailure(w, http.StatusBadGateway, m.ID, unfiltered)
		},
		Failure: func(reason error) []byte {
			report(reason)
			if m.ID == nil {
				return nil
			}
			return jsonrpc.ErrorFor(m.ID, codeUnavailable, unfiltered)
		},
	})
	if err := deliver(stream.out); err != nil {
		stream.out.Drop()
		return err
	}
	stream.out.Finish()
	return nil
}

package mcp

import (
	"net/http"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
	"github.com/pasteport/pasteport/domain/oauth"
)

// admitSession gives a session over HTTP a place until it ends, because the SDK has no limit.
func (s *Server) admitSession(req sdk.Request, caller *oauth.Caller) error {
	session, ok := req.GetSession().(*sdk.ServerSession)
	if extra := req.GetExtra(); !ok || extra == nil || extra.Header == nil {
		return nil
	}
	if !s.open.AddSession(session, caller) {
		return &rpc.Error{Code: jsonrpc.CodeRefused, Message: "the session cannot be opened"}
	}
	return nil
}

// sessionIDOf returns the id of the session of a request, "" when it has none.
func sessionIDOf(req sdk.Request) string {
	session, ok := req.GetSession().(*sdk.ServerSession)
	if !ok || session == nil {
		return ""
	}
	return session.ID()
}

const evictedSession = "the session has ended for a newer one, because there were too many"

// refuseEvicted refuses a request in a session that has ended for another one, and reports whether it did (G20).
func (s *Server) refuseEvicted(w http.ResponseWriter, r *http.Request, session string) (refused bool) {
	if !s.open.WasEvicted(session) {
		return false
	}
	refuseSession(w, r, "G20", evictedSession)
	return true
}

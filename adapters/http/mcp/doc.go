// Package mcp is the protected resource: an MCP server of the official Go SDK behind OAuth access tokens. One endpoint speaks
// every revision, 2024-11-05 (HTTP+SSE) to 2026-07-28 (stateless), and the same server can be given to a local client on stdio.
//
// A request passes, in this order:
//
//	gate      Host and Origin, CORS (G1, G2)
//	guard     the bearer token (G3-G9); from here on the Caller is known and the token is gone from the headers (G14)
//	admit     body limit, the scopes that the body needs (G10), the stream's end with its token (G16)
//	dispatch  the SDK's session handler, its stateless handler, or the HTTP+SSE binding of this package
//	policy    inside the SDK: which tools the caller sees and may call, whatever the transport
//
// A session lives in one process, whose random name is in the session's. With a Bus, a request that reaches another replica passes the same
// gate, guard and admit there, and then goes through the tunnel to the holder of the session, which answers it as one of its own (R1-R5).
//
// The same guard stands before an MCP server elsewhere; then relay takes the place of dispatch, and an Upstream answers (U4-U15).
package mcp

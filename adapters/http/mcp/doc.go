// Package mcp is the protected resource: an MCP server of the official Go SDK behind OAuth access tokens. A Server speaks every revision at one
// endpoint, 2024-11-05 (HTTP+SSE) to 2026-07-28 (stateless), and ServeStdio serves the same server to a local client.
//
// A request passes these steps, in this order:
//
//	gate      Host and Origin, CORS (G1, G2)
//	guard     the bearer token (G3-G9); from here on the caller is known and the token is gone from the headers (G14)
//	admit     the body (package jsonrpc), the scopes that it needs (G10)
//	dispatch  the SDK's session handler, its stateless handler, or the HTTP+SSE binding of this package
//	policy    inside the SDK: which tools the caller sees and may call, whatever the transport
//
// The response is a Writer of package response, which ends with the token or the grant (G16). Package eventstore lets a client resume a stream.
//
// A session lives in one process, whose random name is part of the session's name. With a Bus, a request that reaches another replica passes
// the same gate, guard and admit there, and then package replica forwards it to the replica that owns the session (R1-R5).
//
// NewGateway puts the same guard before an MCP server elsewhere: relay takes the place of dispatch, and an Upstream answers (U4-U15).
package mcp

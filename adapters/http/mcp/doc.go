// Package mcp protects an MCP server with OAuth access tokens (RFC 6750, RFC 9728). New protects a server of the official Go SDK: a Server serves all
// revisions from 2024-11-05 (HTTP+SSE) to 2026-07-28 (stateless) at one endpoint, and ServeStdio serves it to a local client.
//
// A request passes these steps in order:
//
//	gate      checks Host and Origin, and sets CORS headers (G1, G2)
//	guard     checks the bearer token (G3-G9), sets the caller and removes the token from the headers (G14)
//	admit     reads the body (package jsonrpc) and checks the scopes that it needs (G10)
//	dispatch  selects the SDK's handler for sessions or without sessions, or HTTP+SSE of this package
//	policy    inside the SDK: filters and checks tools, for all transports
//
// The response is a Writer of package response, which ends with the token or the grant (G16). Package eventstore lets a client resume a stream.
//
// A session is in one process, whose random name is part of the session id. With a Bus, another replica passes a request through gate, guard and
// admit, and then package replica forwards it to the replica that owns the session (R1-R5).
//
// NewGateway protects an MCP server elsewhere: relay replaces dispatch, and an Upstream answers (U4-U15).
package mcp

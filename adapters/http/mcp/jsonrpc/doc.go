// Package jsonrpc reads the JSON-RPC message in the body of a POST to an MCP endpoint, before the MCP server behind the guard reads it.
//
// ReadBody reads the bytes within limits. Peek then finds what dispatching needs to know, exactly as the Go SDK will read it. ReadStrict is
// for a server that may read it differently: it accepts only a body in which every JSON reader finds the same calls. Both return a Message.
// Refuse describes a message that is not passed on, and which of the server's requests are waiting for it.
package jsonrpc

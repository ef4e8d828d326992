// Package jsonrpc reads the JSON-RPC message in the body of a POST to an MCP endpoint, before the MCP server behind the guard reads it.
//
// ReadBody reads the bytes within limits. Peek parses them exactly as the Go SDK does. ReadStrict is for a server with another parser: it accepts
// only a body in which every JSON parser finds the same calls. Both return a Message. Refuse describes a refused message, with errors for the
// requests of the server that wait for it.
package jsonrpc

// Package response writes the responses of an MCP endpoint. They may be long streams, and they end
// with the grant of their caller.
//
// Registry.NewWriter begins a response: a Writer is an http.ResponseWriter with the context of its
// request. Identify sets the caller, ReadBody reads the request, Begin starts keep-alive comments
// and the timer for the end of the access token, and Finish ends the response. The Registry also
// holds the sessions of the MCP server: End ends the responses and sessions of a grant, Drain ends
// all.
package response

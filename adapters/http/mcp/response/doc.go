// Package response writes the responses of an MCP endpoint, which may last long and have to end with the grant that they are given for.
//
// NewWriter of an OpenSet begins a response: a Writer is an http.ResponseWriter with the context of its request. Identify ties it to a caller,
// ReadBody reads the request, Begin starts what goes on as long as the response does (signs of life, the end with the access token), and
// Finish ends it. The OpenSet also holds the sessions of the MCP server. End closes all that a grant has open, Drain closes everything.
package response

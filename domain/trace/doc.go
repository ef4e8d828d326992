// Package trace records each attempt to connect a client across its requests, so that an operator
// can see at which step it failed and why, or which step is missing. It uses no cookie and stores
// no secret.
//
//	challenge > resource metadata > server metadata > authorize > client metadata > page
//	> token judged > code issued > exchange > stream > call > refresh ... ended
//
// A Recorder collects the steps of one request and notes them in a Journal. A Log stores them.
package trace

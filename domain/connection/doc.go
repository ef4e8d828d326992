// Package connection records attempts to connect a client, each across all its requests. In this
// trace an operator sees at which step an attempt failed and why, or which step is missing. It uses
// no cookie and stores no secret.
//
//	challenge > resource metadata > server metadata > authorize > client metadata > page
//	> token judged > code issued > exchange > stream > call > refresh ... ended
//
// In "token judged" the pasted host token was accepted or refused; a call is a request of MCP.
//
// A Recorder collects the steps of one request and notes them in a Journal. A Log stores them.
package connection

// Package trace follows each attempt to connect a client across its requests: what it asked for, what came of it and why, and
// which step never came. It needs no cookie and holds no secret.
//
//	challenge > resource metadata > server metadata > authorize > client metadata > page > token judged > code issued
//	> exchange > stream > call > refresh ... ended
//
// A Walk notes the steps of one request in a Journal, a Log keeps them, and Assemble makes connections of them.
package trace

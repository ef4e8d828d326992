// Package replica forwards a request to the replica of the service that owns its session, and answers what other replicas forward (R1).
//
// A Forwarder sends frames over a Bus. Forward sends a call to the owner of a session and writes its response as it arrives; the owner runs
// Options.Serve for it. Every message is sealed with the server secret, carries no token, and is answered, so that a replica that has gone is
// noticed and a slow client slows down the tool.
package replica

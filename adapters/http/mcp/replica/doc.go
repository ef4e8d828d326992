// Package replica forwards a request to the replica of the service that owns its session (R1).
//
// A Forwarder sends frames over a Bus. Forward sends a call to the owner of a session and writes its response as it arrives; the owner calls
// Options.Serve for it. Frames are sealed with the server secret and contain no token. Each frame is acknowledged, so that a lost replica is detected
// and a slow client slows down the tool.
package replica

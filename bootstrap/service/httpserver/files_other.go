//go:build !unix

package httpserver

// fileLimit returns unlimited, because this system has no such limit.
func fileLimit() uint64 { return unlimited }

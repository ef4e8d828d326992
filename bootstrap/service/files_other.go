//go:build !unix

package service

// fileLimit is none: this system has no such limit.
func fileLimit() uint64 { return unlimited }

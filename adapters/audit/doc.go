// Package audit writes the calls of MCP servers to a file and to a log, and verifies files.
//
// Open opens a File, whose Record appends one JSON line for each call. The file rotates by size,
// and Reopen follows a file that was renamed. With Options.Chain each line has a number, the hash
// of the line before it and its own hash; Verify finds lines that were changed, removed, moved or
// added.
// Log writes calls to a slog.Logger.
//
// The file is its own work and not a library such as lumberjack: the first line of a new file has
// to continue the chain of the file before it, which such libraries have no hook for, and they drop
// a line that cannot be written without saying so later.
package audit

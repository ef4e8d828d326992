package pasteporttest

import (
	"io"
	"sync"
	"testing"
)

// testLog writes to the output of a test until the test ends. The testing package panics when a goroutine of the site logs later.
type testLog struct {
	mu     sync.Mutex
	output io.Writer
}

func newTestLog(t testing.TB) *testLog {
	l := &testLog{output: t.Output()}
	t.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.output = io.Discard
	})
	return l
}

// Write implements io.Writer.
func (l *testLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.output.Write(line)
}

package pasteporttest_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
)

// fakeT replaces *testing.T in Example, which has none, and in tests that must fail.
type fakeT struct {
	testing.TB
	ctx     context.Context
	end     context.CancelFunc
	cleanup []func()
}

// failure is the message of a failed fakeT.
type failure string

func newFakeT() *fakeT {
	ctx, cancel := context.WithCancel(context.Background())
	return &fakeT{ctx: ctx, end: cancel}
}

// failureOf returns the failure message of a test, or "" if it passes.
func failureOf(test func(t testing.TB)) (message string) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case failure:
			message = string(reason)
		default:
			panic(reason)
		}
	}()
	t := newFakeT()
	defer t.finish()
	test(t)
	return ""
}

func (f *fakeT) Helper()                           {}
func (f *fakeT) Context() context.Context          { return f.ctx }
func (f *fakeT) Output() io.Writer                 { return io.Discard }
func (f *fakeT) Cleanup(act func())                { f.cleanup = append(f.cleanup, act) }
func (f *fakeT) Fatal(args ...any)                 { panic(failure(fmt.Sprint(args...))) }
func (f *fakeT) Fatalf(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

// TempDir returns a folder that is removed at the end.
func (f *fakeT) TempDir() string {
	folder, err := os.MkdirTemp("", "pasteporttest")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// finish ends the test like the testing package.
func (f *fakeT) finish() {
	f.end()
	for _, act := range slices.Backward(f.cleanup) {
		act()
	}
}

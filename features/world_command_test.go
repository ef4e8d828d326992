package features_test

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/pasteport/pasteport/bootstrap/cli"
)

// Ran is the result of a command line.
type Ran struct {
	Code     int
	Out, Err string
}

// Run executes a command line in this process, to its end.
func Run(ctx context.Context, args ...string) Ran { return RunTyping(ctx, "", args...) }

// RunTyping is Run with standard input.
func RunTyping(ctx context.Context, typed string, args ...string) Ran {
	var out, errOut bytes.Buffer
	code := cli.Run(ctx, args, io.NopCloser(strings.NewReader(typed)), &out, &errOut)
	return Ran{code, out.String(), errOut.String()}
}

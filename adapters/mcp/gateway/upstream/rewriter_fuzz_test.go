package upstream

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
)

// FuzzRewriter compares the stream that arrives at once and byte by byte, and looks for an endpoint
// event whose address is not the rewritten one.
func FuzzRewriter(f *testing.F) {
	long := strings.Repeat("x", 2*maxHeld)
	for _, stream := range []string{
		"", "event: endpoint\ndata: /m\n\n", "event: endpoint\rdata: /m\r\r",
		"event:endpoint\r\ndata:/m\r\n\r\ndata: {}\r\n\r\n",
		": " + long + "\nevent: endpoint\ndata: /m\n\n", "data: /m\n: " + long + "\nevent: endpoint\n\n",
		"\ufeffevent: endpoint\ndata: /m\n\n", "data: a\u2028event: endpoint\u2028data: /m\n\n",
		"event: endpoint\n\ndata: /m",
		"data: " + long + "\n\nevent: endpoint\ndata: a\ndata: b\n\n",
	} {
		f.Add([]byte(stream))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		read := func(from io.Reader) (string, error) {
			text, err := io.ReadAll(newRewriter(io.NopCloser(from), func(string) (string, error) {
				return "/own", nil
			}))
			return string(text), err
		}
		whole, errWhole := read(bytes.NewReader(stream))
		pieces, errPieces := read(iotest.OneByteReader(bytes.NewReader(stream)))
		if (errWhole == nil) != (errPieces == nil) || errWhole == nil && whole != pieces {
			t.Fatalf("at once %q, %v\nin pieces %q, %v", whole, errWhole, pieces, errPieces)
		}
		for _, text := range []string{whole, pieces} {
			for _, event := range eventsOf(text) {
				if data, kind := jsonrpc.ParseEvent([]byte(event)); kind == endpoint && string(data) != "/own" {
					t.Fatalf("%q has the address %q", event, data)
				}
			}
		}
	})
}

// eventsOf divides a text at each empty line, as the standard says.
func eventsOf(text string) []string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	return slices.DeleteFunc(strings.SplitAfter(text, "\n\n"), func(event string) bool {
		return !strings.HasSuffix(event, "\n\n")
	})
}

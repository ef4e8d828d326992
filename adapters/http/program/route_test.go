package program

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

func TestProgram(t *testing.T) {
	suite.Run(t, "Serving a program over stdio")
}

var _ = Describe("The messages of a program", Label("U22"), func() {
	read := func(from io.Reader) (texts []string, err error) {
		err = readMessages(from, func(m message) { texts = append(texts, string(m.raw)) })
		return texts, err
	}

	It("are lines with JSON-RPC; other lines are ignored, and a batch is several messages", func() {
		texts, err := read(strings.NewReader("Server started\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n{\"no\":1}\n[]\n[1]\n" +
			`[{"jsonrpc":"2.0","method":"a"}, {"jsonrpc":"2.0","method":"b","params":{"x":"\u2028` + "\u2028" + `"}}]` + "\n{\"jsonrpc\":\"2.0\",\"method\":\"without an end\"}"))
		Expect(err).To(MatchError(io.EOF))
		Expect(texts).To(HaveExactElements(`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"a"}`,
			`{"jsonrpc":"2.0","method":"b","params":{"x":"\u2028`+"\u2028"+`"}}`))
	})

	It("may have 16 MiB and no more", Label("U25"), func() {
		message := `{"jsonrpc":"2.0","method":"a","params":["` + "\"]}\n"
		long := func(size int) string { return message[:41] + strings.Repeat("x", size-len(message)) + message[41:] }
		texts, err := read(strings.NewReader(long(maxMessage)))
		Expect(err).To(MatchError(io.EOF))
		Expect(texts).To(HaveExactElements(HaveLen(maxMessage - 1)))
		_, err = read(strings.NewReader(long(maxMessage + 1)))
		Expect(err).To(MatchError(errLongMessage))
	})

	DescribeTable("name the request that they cancel", func(text string, cancels bool) {
		m, err := parseOne([]byte(text))
		Expect(err).NotTo(HaveOccurred())
		_, ok := m.cancels()
		Expect(ok).To(Equal(cancels))
	},
		Entry(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, true),
		Entry(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`, true),
		Entry(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`, false),
		Entry(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, false),
		Entry(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"requestId":7}}`, false),
	)
})

// FuzzParse passes on every message in one line and with the same JSON (U22).
func FuzzParse(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) {
		messages, err := parse(body)
		if err != nil {
			return
		}
		var all [][]byte
		for _, m := range messages {
			if bytes.ContainsAny(m.raw, "\r\n") || !json.Valid(m.raw) || (m.request == nil) == (m.response == nil) {
				t.Fatalf("%q became %q", body, m.raw)
			}
			m.cancels()
			m.isStateless()
			all = append(all, m.raw)
		}
		var given bytes.Buffer
		if json.Compact(&given, body) != nil {
			t.Fatalf("%q is no JSON", body)
		}
		if joined := bytes.Join(all, []byte{','}); !bytes.Equal(given.Bytes(), joined) && given.String() != "["+string(joined)+"]" {
			t.Fatalf("%q became %q", body, joined)
		}
	})
}

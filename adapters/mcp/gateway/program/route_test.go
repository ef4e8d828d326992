package program

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
	"github.com/pasteport/pasteport/features/suite"
)

func TestProgram(t *testing.T) {
	suite.Run(t, "Serving a program over stdio")
}

var _ = Describe("The messages of a program", Label("U22"), func() {
	var others []string
	read := func(from io.Reader) (texts []string, err error) {
		memory := jsonrpc.NewBodyMemory(64 << 20).Reserve("ada")
		err = readMessages(from, &memory, func(m message) {
			texts = append(texts, string(m.raw))
		}, func(line string) { others = append(others, line) })
		return texts, err
	}

	It("are lines with JSON-RPC; other lines are ignored, and a batch is several messages", func() {
		texts, err := read(
			strings.NewReader(
				"Server started\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n{\"no\":1}\n[]\n[1]\n" +
					`[{"jsonrpc":"2.0","method":"a"}, {"jsonrpc":"2.0","method":"b","params":{"x":"\u2028` + "\u2028" +
					`"}}]` + "\n{\"jsonrpc\":\"2.0\",\"method\":\"without an end\"}"))
		Expect(err).To(MatchError(io.EOF))
		Expect(texts).To(HaveExactElements(`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"a"}`,
			`{"jsonrpc":"2.0","method":"b","params":{"x":"\u2028`+"\u2028"+`"}}`))
	})

	It("do not reach the log when they are cut off, as other text does", func() {
		for cut, logged := range map[string]string{
			`{"jsonrpc":"2.0","result":"secret`: "the beginning of a message, which was cut off",
			` [{"jsonrpc":"2.0","id":1`:         "the beginning of a message, which was cut off",
			"panic: out of memory":              "panic: out of memory",
		} {
			others = nil
			_, err := read(strings.NewReader(cut))
			Expect(err).To(MatchError(io.EOF))
			Expect(others).To(Equal([]string{logged}))
		}
	})

	It("may follow a byte order mark; pretty-printed JSON and other text is passed on for the log", func() {
		others = nil
		texts, err := read(strings.NewReader("\ufeff{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\nready " +
			"{\"jsonrpc\":\"2.0\",\"method\":\"b\"}\r\n{\n  \"jsonrpc\": \"2.0\",\nusage: x"))
		Expect(err).To(MatchError(io.EOF))
		Expect(texts).To(HaveExactElements(`{"jsonrpc":"2.0","method":"a"}`))
		Expect(others).To(HaveExactElements(`ready {"jsonrpc":"2.0","method":"b"}`,
			"{", `  "jsonrpc": "2.0",`, "usage: x"))
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

	It("use the memory for bodies until they are passed on", Label("U25", "G19"), func() {
		line := `{"jsonrpc":"2.0","method":"` + strings.Repeat("x", 2<<20) + "\"}\n"
		shared := jsonrpc.NewBodyMemory(8 << 20)
		first, second := shared.Reserve("ada"), shared.Reserve("ada")
		var inside error
		Expect(readMessages(strings.NewReader(line), &first, func(message) {
			inside = readMessages(strings.NewReader(line), &second, func(message) {}, func(string) {})
		}, func(string) {})).To(MatchError(io.EOF))
		Expect(inside).To(MatchError(errNoMemory))
		Expect(readMessages(strings.NewReader(line+line), &second, func(message) {}, func(string) {})).
			To(MatchError(io.EOF))
	})

	DescribeTable("have an id, which is kept as it is written", func(text, same, other string) {
		var ids []jsonrpc.ID
		for _, id := range []string{text, same, other} {
			messages, err := parse([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"a"}`))
			Expect(err).NotTo(HaveOccurred())
			ids = append(ids, messages[0].id)
		}
		Expect(ids[0].Key).To(And(Equal(ids[1].Key), Not(Equal(ids[2].Key))))
		Expect(string(errorAnswer(ids[0], ""))).To(ContainSubstring(`"id":` + text))
	},
		Entry("beyond 2^53", "9007199254740993", "9007199254740993", "9007199254740992"),
		Entry("with a fraction", "1.5", "1.5", "1"),
		Entry("that is a number in two spellings", "1.0", "1", "2"),
		Entry("that is text in two spellings", `"\u00e4"`, `"ä"`, `"a"`),
		Entry("that is text with digits", `"1"`, `"1"`, "1"),
	)

	DescribeTable("are refused with an id that is", func(id string, reason error) {
		_, err := parse([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"a"}`))
		Expect(err).To(MatchError(reason))
	}, Entry("too long", `"`+strings.Repeat("x", 1<<10)+`"`, jsonrpc.ErrLongID),
		Entry("an object", "{}", jsonrpc.ErrNoID), Entry("a truth value", "true", jsonrpc.ErrNoID))

	DescribeTable("name the request that they cancel", func(text string, cancels bool) {
		messages, err := parse([]byte(text))
		Expect(err).NotTo(HaveOccurred())
		_, ok := messages[0].cancels()
		Expect(ok).To(Equal(cancels))
	},
		Entry(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, true),
		Entry(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`, true),
		Entry(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`, false),
		Entry(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, false),
		Entry(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"requestId":7}}`, false),
	)
})

// FuzzParse passes on every message in one line and with the same JSON.
func FuzzParse(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) {
		var given bytes.Buffer
		isJSON := json.Compact(&given, body) == nil
		messages, err := parse(body)
		if err != nil {
			return
		}
		var all [][]byte
		for _, m := range messages {
			if bytes.ContainsAny(m.raw, "\r\n") || !json.Valid(m.raw) || m.isCall() && m.isResponse() {
				t.Fatalf("%q became %q", body, m.raw)
			}
			m.cancels()
			m.isStateless()
			var line bytes.Buffer
			_ = json.Compact(&line, m.raw) // is valid
			all = append(all, line.Bytes())
		}
		if !isJSON {
			t.Fatalf("%q is no JSON", body)
		}
		if joined := bytes.Join(all, []byte{','}); !bytes.Equal(given.Bytes(), joined) && given.String() != "["+
			string(joined)+"]" {
			t.Fatalf("%q became %q", body, joined)
		}
	})
}

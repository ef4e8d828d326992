package program

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

func TestProgram(t *testing.T) {
	suite.Run(t, "Serving a program over stdio")
}

var _ = Describe("The messages of a program", Label("U22"), func() {
	var others []string
	read := func(from io.Reader) (texts []string, err error) {
		memory := message.NewBodyMemory(64 << 20).Reserve("ada")
		err = readMessages(from, &memory, func(m message.Message) {
			texts = append(texts, string(m.Encode()))
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

	It("become an error for the client when an answer could be read in two ways", func() {
		others = nil
		texts, err := read(strings.NewReader(`{"jsonrpc":"2.0","id":1,"result":{"a":1},"result":{"a":2}}` + "\n"))
		Expect(err).To(MatchError(io.EOF))
		Expect(texts).To(HaveExactElements(And(ContainSubstring(`"id":1,"error":`), ContainSubstring("the same name"))))
		Expect(others).To(HaveExactElements("a message that cannot be read"))
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

	It("may have 16 MiB and no more", Label("U25"), func() {
		const begin, end = `{"jsonrpc":"2.0","method":"a","params":{"x":"`, "\"}}\n"
		long := func(size int) string { return begin + strings.Repeat("x", size-len(begin)-len(end)) + end }
		texts, err := read(strings.NewReader(long(maxMessage)))
		Expect(err).To(MatchError(io.EOF))
		Expect(texts).To(HaveExactElements(HaveLen(maxMessage - 1)))
		_, err = read(strings.NewReader(long(maxMessage + 1)))
		Expect(err).To(MatchError(errLongMessage))
	})

	It("use the memory for bodies until they are passed on", Label("U25", "G19"), func() {
		line := `{"jsonrpc":"2.0","method":"a","params":{"x":"` + strings.Repeat("x", 2<<20) + "\"}}\n"
		shared := message.NewBodyMemory(8 << 20)
		first, second := shared.Reserve("ada"), shared.Reserve("ada")
		var inside error
		Expect(readMessages(strings.NewReader(line), &first, func(message.Message) {
			inside = readMessages(strings.NewReader(line), &second, func(message.Message) {}, func(string) {})
		}, func(string) {})).To(MatchError(io.EOF))
		Expect(inside).To(MatchError(errNoMemory))
		Expect(readMessages(strings.NewReader(line+line), &second, func(message.Message) {}, func(string) {})).
			To(MatchError(io.EOF))
	})
})

var _ = Describe("Starting the program", Label("U25"), func() {
	It("is refused for a person who has started it too often", func() {
		mayStart := func(person string) bool { return person != "ada" }
		u := New(gateway.Address{}, gateway.Config{}, gateway.Options{}, mayStart)
		_, err := u.start(httptest.NewRequest(http.MethodPost, "/mcp", nil), oauth.Caller{Subject: "ada"},
			oauth.HostToken{})
		var failure *gateway.Failure
		Expect(errors.As(err, &failure)).To(BeTrue())
		Expect(err).To(MatchError(ContainSubstring("started too often for this person")))
		Expect(failure.Status).To(Equal(http.StatusServiceUnavailable))
	})
})

package message

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func never(int64) bool { return false }

var _ = Describe("The ids of calls", Label("G18", "U22"), func() {
	numbered := func(s *Sequence, texts ...string) (numbers []int64) {
		for _, text := range texts {
			id, err := ParseID(jsontext.Value(text))
			Expect(err).NotTo(HaveOccurred())
			numbers = append(numbers, s.Next(id))
		}
		return numbers
	}

	DescribeTable("come back as the client has written them:", func(id string) {
		sent := new(Sequence).Renumber(decoded(`{"jsonrpc":"2.0", "id" : ` + id + ` ,"method":"ping"}`))[0]
		Expect(sent.ID.Text).NotTo(Equal(id))
		for _, around := range []string{"{}", "event: message\nid: a_1\ndata: {}\n\n"} {
			answer := strings.Replace(around, "{}", `{"jsonrpc":"2.0","id":`+sent.ID.Text+`,"result":{"id":"x"}}`, 1)
			Expect(string(Restore([]byte(answer)))).To(Equal(strings.Replace(answer, sent.ID.Text, id, 1)))
		}
	},
		Entry(nil, "1"), Entry(nil, "1.0"), Entry(nil, "9007199254740993"), Entry(nil, "1.5"), Entry(nil, `"a"`),
		Entry(nil, `"\u00e4<"`), Entry(nil, `"3.MQ"`),
	)

	DescribeTable("are kept as they are written", func(text, same, other string) {
		var ids []ID
		for _, id := range []string{text, same, other} {
			ids = append(ids, decoded(`{"jsonrpc":"2.0","id":` + id + `,"method":"a"}`)[0].ID)
		}
		Expect(ids[0].Key).To(And(Equal(ids[1].Key), Not(Equal(ids[2].Key))))
		Expect(string(ErrorFor(ids[0], 1, "").Encode())).To(ContainSubstring(`"id":` + text))
	},
		Entry("beyond 2^53", "9007199254740993", "9007199254740993", "9007199254740992"),
		Entry("with a fraction", "1.5", "1.5", "1"),
		Entry("that is a number in two spellings", "1.0", "1", "2"),
		Entry("that is text in two spellings", `"\u00e4"`, `"ä"`, `"a"`),
		Entry("that is text with digits", `"1"`, `"1"`, "1"),
	)

	DescribeTable(
		"are refused when they are",
		func(id, reason string) {
			_, _, err := Decode([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"a"}`))
			Expect(err).To(MatchError(ContainSubstring(reason)))
		},
		Entry("too long", `"`+strings.Repeat("x", 1<<10)+`"`, "more than 1024 bytes"),
		Entry(
			"an object",
			"{}",
			"neither a number nor a string",
		),
		Entry("a truth value", "true", "neither a number nor a string"),
	)

	DescribeTable("stay as they are in", func(text string) {
		if text[0] == '{' {
			Expect(string(new(Sequence).Renumber(decoded(text))[0].Encode())).To(Equal(text))
		}
		Expect(string(Restore([]byte(text)))).To(Equal(text))
	},
		Entry("notifications", `{"jsonrpc":"2.0","method":"a","params":{"id":1}}`),
		Entry("answers to the server", `{"jsonrpc":"2.0","id":1,"result":{"id":1}}`),
		Entry("an event without a message", "event: prime\nid: a_0\ndata: \n\n"), Entry("a comment", ": ok\n\n"),
	)

	It("are different for two requests in a batch with one id", func() {
		sent := new(Sequence).Renumber(
			decoded(`[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":1,"method":"b"}]`))
		Expect(sent[0].ID).NotTo(Equal(sent[1].ID))
	})

	It("stay as they are in requests of the server", func() {
		request := `{"jsonrpc":"2.0","id":"1.MQ","method":"a"}`
		Expect(string(Restore([]byte(request)))).To(Equal(request))
	})

	meant := func(s *Sequence, isGone func(int64) bool) int64 {
		call, _ := s.Cancelled(ID{Text: "1.0", Key: "1"}, isGone)
		return call
	}

	It("name the call that a cancellation means, unless several recent ones have the id", func() {
		s := new(Sequence)
		Expect(meant(s, never)).To(BeZero())
		calls := numbered(s, "1", `"1"`, "2")
		Expect(meant(s, never)).To(Equal(calls[0]))
		again := numbered(s, "1", "1", "1")
		Expect(meant(s, never)).To(BeZero(), "it may be a late one for the first")
		Expect(meant(s, func(call int64) bool {
			return call <= again[1]
		})).To(Equal(again[1]), "the newest whose client has gone")
	})

	It("are forgotten after some hundred calls", func() {
		s := new(Sequence)
		numbered(s, "1")
		for range maxRecent {
			numbered(s, `"x"`)
		}
		Expect(meant(s, never)).To(BeZero())
		last := numbered(s, "1")
		Expect(meant(s, never)).To(Equal(last[0]))
	})
})

// decoded returns the messages of a text.
func decoded(text string) []Message {
	GinkgoHelper()
	messages, _, err := Decode([]byte(text))
	Expect(err).NotTo(HaveOccurred())
	return messages
}

// FuzzRenumber gives calls other ids and back, and changes nothing else.
func FuzzRenumber(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) {
		Restore(body)
		messages, _, err := Decode(body)
		if err != nil {
			return
		}
		for i, m := range new(Sequence).Renumber(messages) {
			if !m.IsCall() {
				continue
			}
			if _, text, ok := Unnumbered([]byte(m.ID.Text)); !ok || text != messages[i].ID.Text {
				t.Fatalf("%q became %q in %q", messages[i].ID.Text, m.ID.Text, body)
			}
			m.ID = messages[i].ID
			if string(m.Encode()) != string(messages[i].Encode()) {
				t.Fatalf("%q became %q", body, m.Encode())
			}
		}
	})
}

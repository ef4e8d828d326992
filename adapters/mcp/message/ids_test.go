package message

import (
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
		Entry(
			"an object",
			"{}",
			"neither a number nor a string",
		),
		Entry("a truth value", "true", "neither a number nor a string"),
	)

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

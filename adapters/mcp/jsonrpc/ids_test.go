package jsonrpc

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func never(int64) bool { return false }

var _ = Describe("The ids of calls", Label("G18", "U22"), func() {
	numbered := func(s *Sequence, texts ...string) (numbers []int64) {
		for _, text := range texts {
			id, err := ParseID([]byte(text))
			Expect(err).NotTo(HaveOccurred())
			numbers = append(numbers, s.Next(id))
		}
		return numbers
	}

	DescribeTable("come back as the client has written them:", func(id string) {
		body := new(Sequence).Renumber([]byte(`{"jsonrpc":"2.0", "id" : ` + id + ` ,"method":"ping"}`))
		var sent struct{ ID json.RawMessage }
		Expect(json.Unmarshal(bytes.Join(body, nil), &sent)).To(Succeed())
		Expect(string(sent.ID)).NotTo(Equal(id))
		for _, around := range []string{"{}", "event: message\nid: a_1\ndata: {}\n\n"} {
			answer := strings.Replace(around, "{}", `{"jsonrpc":"2.0","id":`+string(sent.ID)+`,"result":{"id":"x"}}`, 1)
			Expect(string(Restore([]byte(answer)))).To(Equal(strings.Replace(answer, string(sent.ID), id, 1)))
		}
	},
		Entry(nil, "1"), Entry(nil, "1.0"), Entry(nil, "9007199254740993"), Entry(nil, "1.5"), Entry(nil, `"a"`),
		Entry(nil, `"\u00e4<"`), Entry(nil, `"3.MQ"`),
	)

	DescribeTable("stay as they are in", func(text string) {
		Expect(string(bytes.Join(new(Sequence).Renumber([]byte(text)), nil))).To(Equal(text))
		Expect(string(Restore([]byte(text)))).To(Equal(text))
	},
		Entry("notifications", `{"jsonrpc":"2.0","method":"a","params":{"id":1}}`),
		Entry("answers to the server", `{"jsonrpc":"2.0","id":1,"result":{"id":1}}`),
		Entry("what the SDK refuses", `{"jsonrpc":"2.0","id":{},"method":"a"}`),
		Entry("broken JSON", `{"id":1,"method":"a"`),
		Entry("an event without a message", "event: prime\nid: a_0\ndata: \n\n"), Entry("a comment", ": ok\n\n"),
	)

	It("are different for two requests in a batch with one id", func() {
		batch := bytes.Join(new(Sequence).Renumber([]byte(`[{"id":1,"method":"a"},{"id":1,"method":"b"}]`)), nil)
		var sent []struct{ ID string }
		Expect(json.Unmarshal(batch, &sent)).To(Succeed())
		Expect(sent[0].ID).NotTo(Equal(sent[1].ID))
	})

	It("stay as they are in requests of the server", func() {
		request := `{"id":"1.MQ","method":"a"}`
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

// FuzzRenumber gives calls other ids and back, and changes nothing else.
func FuzzRenumber(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) {
		sent := bytes.Clone(body)
		parts := bytes.Join(new(Sequence).Renumber(body), nil)
		if !bytes.Equal(body, sent) {
			t.Fatalf("wrote into %q", sent)
		}
		if json.Valid(body) != json.Valid(parts) {
			t.Fatalf("%q became %q", body, parts)
		}
		found, _, _ := Scan(parts, math.MaxInt)
		for _, m := range found {
			id := m.ID.Of(parts)
			number, text, ok := Unnumbered(id)
			if ok && number > 0 && Numbered(number, text) != string(id) {
				t.Fatalf("%q became %q in %q", body, text, parts)
			}
		}
		Restore(body)
	})
}

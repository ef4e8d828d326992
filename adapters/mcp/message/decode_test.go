package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

var inJSON = http.Header{"Content-Type": {"application/json"}}

const callOfRead = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{}}}`

var _ = Describe("Reading a body", Label("U11"), func() {
	DescribeTable("finds what the guard needs",
		func(body string, stateless, initialize, listens bool, tools ...string) {
			b, err := Read(inJSON, []byte(body))
			Expect(err).NotTo(HaveOccurred())
			Expect([]bool{b.IsStateless(), b.Has("initialize"), b.Listens()}).
				To(Equal([]bool{stateless, initialize, listens}))
			Expect(strings.Join(b.Names.Tools, " ")).To(Equal(strings.Join(tools, " ")))
		},
		Entry("in a call", callOfRead, false, false, false, "read"),
		Entry("in a batch", "["+callOfRead+","+`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`+"]",
			false, true, false, "read"),
		Entry("in a modern request",
			`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{`+
				`"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, true, false, true),
		Entry("after quoted brackets", `{"jsonrpc":"2.0","method":"tools/call","params":{"x":"`+
			strings.Repeat(`[\"`, 300)+`","name":"read"}}`, false, false, false, "read"),
	)

	It("refuses what is nested too deeply", func() {
		nested := func(depth int) []byte {
			return []byte(`{"jsonrpc":"2.0","method":"a","params":{"x":` + strings.Repeat("[", depth) +
				strings.Repeat("]", depth) + `}}`)
		}
		_, err := Read(inJSON, nested(maxDepth-2))
		Expect(err).NotTo(HaveOccurred())
		_, err = Read(inJSON, nested(maxDepth-1))
		Expect(err).To(MatchError(ContainSubstring("deeper")))
	})

	It("refuses more members than can be compared and sorted", Label("G19"), func() {
		wide := func(objects int) []byte {
			return []byte(`{"jsonrpc":"2.0","method":"a","params":{"x":[` +
				strings.Repeat(`{"a":":"},`, objects) + `1]}}`)
		}
		_, err := Read(inJSON, wide(maxBodyMembers-4))
		Expect(err).NotTo(HaveOccurred())
		_, err = Read(inJSON, wide(maxBodyMembers-3))
		Expect(err).To(MatchError(ContainSubstring("members")))
	})

	It("answers for a server whose answer cannot be read behind its id", Label("U11"), func() {
		answers := func(text string) (ids []string) {
			for _, m := range RefuseAnswers(errors.New("wrong"), []byte(text)) {
				Expect(m.Error).NotTo(BeNil())
				ids = append(ids, m.ID.Text)
			}
			return ids
		}
		Expect(answers(`{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}`)).To(Equal([]string{"1"}))
		Expect(answers(`{"jsonrpc":"2.0","id":1,"result":` + strings.Repeat("[", 20_000))).To(Equal([]string{"1"}))
		Expect(answers(`{"jsonrpc":"2.0","id":1,"method":"a","params":NaN}`)).To(BeEmpty())
		Expect(answers(`{"jsonrpc":"2.0"`)).To(BeEmpty())
		Expect(answers(`text`)).To(BeEmpty())
	})

	DescribeTable("accepts the charset", func(contentType string) {
		_, err := Read(http.Header{"Content-Type": {contentType}}, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("utf-8", "application/json; charset=utf-8"),
		Entry("UTF-8 in quotes", `Application/JSON;charset="UTF-8"`),
		Entry("utf8, as some clients call it", "application/json; charset=utf8"),
	)
})

var _ = DescribeTable("A message goes on with its values as they were", Label("U11"), func(text, encoded string) {
	messages, isBatch, err := Decode([]byte(text))
	Expect(err).NotTo(HaveOccurred())
	Expect(string(Body{Messages: messages, IsBatch: isBatch}.Encode())).To(Equal(encoded))
},
	Entry("a notification without params", `{"jsonrpc":"2.0","method":"a","params":null,"id":null}`,
		`{"jsonrpc":"2.0","method":"a"}`),
	Entry("a result", `{"jsonrpc":"2.0","id":"x","result":{"a" : "\ud83d"},"error":null}`,
		`{"jsonrpc":"2.0","id":"x","result":{"a" : "\ud83d"}}`),
	Entry("a request with every member", `{"jsonrpc":"2.0","id":1,"method":"a","result":null,"error":null}`,
		`{"jsonrpc":"2.0","id":1,"method":"a"}`),
	Entry("an error with every member", `{"jsonrpc":"2.0","id":1,"method":null,"result":null,"error":{"code":1}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1}}`),
	Entry("a result that is null", `{"jsonrpc":"2.0","id":1,"method":null,"result":null,"error":null}`,
		`{"jsonrpc":"2.0","id":1,"result":null}`),
	Entry("a batch", ` [{"jsonrpc":"2.0","method":"a"} , {"jsonrpc":"2.0","method":"b"}]`,
		`[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]`),
)

// FuzzDecode compares what is found in a body with what other parsers find in what goes on.
func FuzzDecode(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) {
		sent := bytes.Clone(body)
		ours, err := Read(inJSON, body)
		if err != nil {
			if refused := Refuse(err, sent); refused.text == "" ||
				refused.id.Text != "" && !json.Valid([]byte(refused.id.Text)) {
				t.Fatalf("refused %q as %+v", sent, refused)
			}
			return
		}
		text := ours.Encode()
		if again, err := Read(inJSON, bytes.Clone(text)); err != nil || !bytes.Equal(again.Encode(), text) {
			t.Fatalf("%q became %q and then %q: %v", sent, text, again.Encode(), err)
		}
		if !ours.IsBatch {
			if _, err := sdk.DecodeMessage(text); err != nil && !ours.Only().IsResponse() {
				t.Fatalf("the SDK refuses %q, which was %q: %v", text, sent, err)
			}
		}
		tools, prompts, resources := standardNames(t, text)
		if !slices.Equal(ours.Names.Tools, tools) {
			t.Fatalf("found calls of %q, and the standard library of %q", ours.Names.Tools, tools)
		}
		for _, name := range prompts {
			if !slices.Contains(ours.Names.Prompts, name) {
				t.Fatalf("found the prompts %q, and the standard library %q", ours.Names.Prompts, prompts)
			}
		}
		for _, uri := range resources {
			if !slices.Contains(ours.Names.Resources, uri) {
				t.Fatalf("found the resources %q, and the standard library %q", ours.Names.Resources, resources)
			}
		}
	})
}

// standardNames returns the names that encoding/json finds, which ignores case and takes the last
// of duplicates.
func standardNames(t *testing.T, body []byte) (tools, prompts, resources []string) {
	type call struct {
		Method string
		Params json.RawMessage
	}
	var calls []call
	if trimmed := bytes.TrimSpace(body); trimmed[0] == '[' {
		if err := json.Unmarshal(body, &calls); err != nil {
			t.Fatal(err)
		}
	} else {
		calls = make([]call, 1)
		if err := json.Unmarshal(body, &calls[0]); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range calls {
		var params struct{ Name string }
		if len(one.Params) > 0 {
			if err := json.Unmarshal(one.Params, &params); err != nil {
				t.Fatal(err)
			}
		}
		var further struct { // members that other methods may have with any type
			Ref           struct{ Name, URI string }
			URI           string
			Notifications struct{ ResourceSubscriptions []string }
		}
		_ = json.Unmarshal(one.Params, &further)
		if strings.HasPrefix(strings.ToLower(one.Method), "tools/") &&
			(params.Name != "" || one.Method == "tools/call") {
			tools = append(tools, params.Name)
		}
		switch one.Method {
		case "prompts/get":
			prompts = append(prompts, params.Name)
		case "resources/read":
			resources = append(resources, further.URI)
		case "completion/complete":
			prompts, resources = append(prompts, further.Ref.Name), append(resources, further.Ref.URI)
		case "subscriptions/listen":
			resources = append(resources, further.Notifications.ResourceSubscriptions...)
		}
	}
	without := func(names []string) []string {
		return slices.DeleteFunc(names, func(name string) bool { return name == "" })
	}
	return tools, without(prompts), without(resources)
}

func TestJSONRPC(t *testing.T) { suite.Run(t, "Messages of JSON-RPC") }

var _ = Describe("Telling an answer from other messages", func() {
	DescribeTable("knows an answer, as the SDK writes it, from", func(message sdk.Message, is bool) {
		text, err := sdk.EncodeMessage(message)
		Expect(err).NotTo(HaveOccurred())
		Expect(IsResponse(text)).To(Equal(is), string(text))
	},
		Entry("a result", &sdk.Response{ID: made(1.0), Result: []byte(`{"method":"x"}`)}, true),
		Entry("an error", &sdk.Response{ID: made("a"), Error: &sdk.Error{Code: 1, Message: "no"}}, true),
		Entry("a request of the server",
			&sdk.Request{ID: made(1.0), Method: "ping", Params: []byte(`{"result":1}`)}, false),
		Entry("a notification", &sdk.Request{Method: "notifications/progress", Params: []byte(`{"error":1}`)},
			false),
	)

	It("does not take other text for an answer", func() {
		for _, text := range []string{"", "null", "[", `[{"result":1}]`, `{"a":{"result":1}}`} {
			Expect(IsResponse([]byte(text))).To(BeFalse(), text)
		}
	})
})

func made(id any) sdk.ID {
	made, _ := sdk.MakeID(id)
	return made
}

var _ = Describe("Reading a body", Label("G13"), func() {
	const limit = 10
	DescribeTable("reads the bytes that arrive, for any announced length:",
		func(length, announced int, readers ...func(io.Reader) io.Reader) {
			for _, reading := range append(readers, func(r io.Reader) io.Reader {
				return r
			}, iotest.OneByteReader, iotest.DataErrReader) {
				text := bytes.Repeat([]byte("x"), length)
				r := httptest.NewRequest(http.MethodPost, "/mcp", reading(bytes.NewReader(text)))
				r.ContentLength = int64(announced)
				reserved := NewBodyMemory(2 * limit).Reserve("alice")
				body, err := ReadBody(r, limit, &reserved)
				if length > limit {
					Expect(err).To(Equal(TooLargeError{limit}))
					continue
				}
				Expect(reserved.reserved).To(And(BeNumerically(">=", length), BeNumerically("<=", limit+1)))
				Expect(cap(body)).To(BeNumerically("<=", reserved.reserved))
				Expect(err).NotTo(HaveOccurred())
				Expect(body).To(Equal(text))
			}
		},
		Entry("nothing", 0, 0), Entry("nothing, of unknown length", 0, -1), Entry("less than the limit", 9, 9),
		Entry("as much as the limit", 10, 10), Entry("as much, of unknown length", 10, -1),
		Entry("more than the limit", 11, 11), Entry("more, of unknown length", 11, -1),
		Entry("more than announced", 11, 3),
		Entry("a little more than announced", 4, 3), Entry("less than announced", 4, 10),
		Entry("far less than announced", 4, 1<<40),
	)

	It("fails for an incomplete body", func() {
		for _, announced := range []int64{-1, 0, 3, 8} {
			r := httptest.NewRequest(http.MethodPost, "/mcp",
				io.MultiReader(bytes.NewReader([]byte("half")), iotest.ErrReader(io.ErrUnexpectedEOF)))
			r.ContentLength = announced
			reserved := NewBodyMemory(limit).Reserve("alice")
			_, err := ReadBody(r, limit, &reserved)
			Expect(err).To(MatchError(io.ErrUnexpectedEOF))
		}
	})
})

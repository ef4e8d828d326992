package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

func TestFilter(t *testing.T) {
	suite.Run(t, "Hiding what a caller may not see")
}

func mayShow(name string) bool { return !strings.Contains(name, "secret") }

var hiding = Lists{Tools: mayShow, Prompts: mayShow, Resources: mayShow}

// updated is a notification that a resource has changed.
func updated(uri string) string {
	return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`
}

// result is a JSON-RPC response with members of the result.
func result(members string) string { return `{"jsonrpc":"2.0","id":1,"result":{` + members + `}}` }

var _ = Describe("Filtering a message", Label("U27"), func() {
	DescribeTable("removes what the caller may not see:", func(message, filtered string) {
		Expect(hiding.Filter([]byte(message))).To(BeEquivalentTo(filtered))
	},
		Entry("a tool", result(
			`"tools":[{"name":"a","x":1}, {"name":"secret"}, {"name":"b"}],"nextCursor":"n","_meta":{}`),
			result(`"tools":[{"name":"a","x":1},{"name":"b"}],"nextCursor":"n","_meta":{}`)),
		Entry("a prompt", result(`"prompts":[{"name":"secret"},{"name":"b"}]`), result(`"prompts":[{"name":"b"}]`)),
		Entry("a resource", result(`"resources":[{"name":"x","uri":"a:secret"},{"name":"secret","uri":"a:b"}]`),
			result(`"resources":[{"name":"secret","uri":"a:b"}]`)),
		Entry("a template", result(`"resourceTemplates":[{"uriTemplate":"a:secret/{x}"}]`),
			result(`"resourceTemplates":[]`)),
		Entry("a message in a batch", `[`+result(`"tools":[{"name":"secret"}]`)+`, {"jsonrpc":"2.0","method":"x"}]`,
			`[`+result(`"tools":[]`)+`,{"jsonrpc":"2.0","method":"x"}]`),
		Entry("an element with an escaped name", result(`"tools":[{"name":"\u0073ecret"}]`), result(`"tools":[]`)),
		Entry("an element without a name",
			result(`"tools":[{"title":"x"},"secret",7,null,{"name":7},{"name":["secret"]}]`), result(`"tools":[]`)),
		Entry("an update of a resource", updated("a:secret"), ""),
		Entry("an update in a batch", `[`+updated("a:secret")+`, `+result(`"tools":[{"name":"secret"}]`)+`,`+
			updated("a:secret")+`]`, `[`+result(`"tools":[]`)+`]`),
		Entry("a public cache", result(`"tools":[],"cacheScope":"public","ttlMs":5`),
			result(`"tools":[],"cacheScope":"private","ttlMs":5`)),
		Entry("a cache that is public by default", result(`"contents":[],"ttlMs":5 `),
			result(`"contents":[],"ttlMs":5,"cacheScope":"private"`)),
	)

	DescribeTable("leaves unchanged", func(message string) {
		Expect(hiding.Filter([]byte(message))).To(BeEquivalentTo(message))
	},
		Entry("a list of what the caller may see", result(`"tools":[{"name" : "a"}],"x":"\ud800"`)),
		Entry("an update of another resource", updated("a:b")),
		Entry("the notice of a changed list",
			`{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{"_meta":{"uri":"a:secret"}}}`),
		Entry("the parameters of another notification",
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"uri":"a:secret"}}`),
		Entry("a list deeper in a result",
			result(`"content":[{"tools":[{"name":"secret"}]}],"structuredContent":{"tools":[{"name":"secret"}]}`)),
		Entry("the parameters of a request",
			`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"tools":[{"name":"secret"}]}}`),
	)

	It("leaves a list of a kind without rules unchanged", func() {
		message := result(`"tools":[{"name":"secret"}],"prompts":7`)
		Expect(Lists{Resources: mayShow}.Filter([]byte(message))).To(BeEquivalentTo(message))
		Expect(Lists{Tools: mayShow}.Filter([]byte(updated("a:secret")))).To(BeEquivalentTo(updated("a:secret")))
	})

	DescribeTable(
		"fails for",
		func(message string) {
			_, err := hiding.Filter([]byte(message))
			Expect(err).To(HaveOccurred())
		},
		Entry("data after the message", result("")+result(`"tools":[{"name":"secret"}]`)),
		Entry("a list that is an object", result(`"tools":{"secret":{}}`)),
		Entry("other spellings of a list", result(`"Tools":[{"name":"secret"}]`)),
		Entry("a repeated list", result(`"tools":[],"\u0074ools":[{"name":"secret"}]`)),
		Entry(
			"two spellings of a result",
			`{"jsonrpc":"2.0","id":1,"result":{},"Result":{"tools":[{"name":"secret"}]}}`,
		),
		Entry("an element with two names", result(`"tools":[{"name":"a","name":"secret"}]`)),
		Entry("an update with two URIs",
			`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b","URI":"a:secret"}}`),
	)
})

// responding runs an MCP server that writes parts, and returns the filtered response. After an
// error, the message is "refused".
func responding(header http.Header, parts ...string) (*httptest.ResponseRecorder, *int) {
	recorder, released := httptest.NewRecorder(), new(int)
	w := &Writer{
		To:      recorder,
		Lists:   hiding,
		Release: func() { *released++ },
		Reserve: func(length int64) error {
			if length > 20<<20 {
				return errors.New("no memory")
			}
			return nil
		},
		Refuse: func(w http.ResponseWriter, _ int, _ error) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write([]byte("refused"))
		},
		Failure: func(error) []byte { return []byte("refused") },
	}
	for name, values := range header {
		w.Header()[name] = values
	}
	for _, part := range parts {
		_, err := w.Write([]byte(part))
		Expect(err).NotTo(HaveOccurred())
		Expect(w.FlushError()).To(Succeed())
	}
	w.Finish()
	return recorder, released
}

func typed(mediaType string, more ...string) http.Header {
	header := http.Header{"Content-Type": {mediaType}}
	for i := 0; i < len(more); i += 2 {
		header.Set(more[i], more[i+1])
	}
	return header
}

// ping is a message without anything to hide.
const ping = `{"jsonrpc":"2.0","method":"ping"}`

const jsonType, eventType = "application/json", "text/event-stream"

var _ = Describe("Filtering a response", Label("U27"), func() {
	secret, open := result(`"tools":[{"name":"secret"},{"name":"a"}]`), result(`"tools":[{"name":"a"}]`)

	DescribeTable("filters", func(header http.Header, sent, received string) {
		whole, released := responding(header, sent)
		Expect(whole.Body.String()).To(Equal(received))
		Expect(*released).To(BeNumerically(">", 0))
		var letters []string
		for i := range len(sent) {
			letters = append(letters, sent[i:i+1])
		}
		single, _ := responding(header, letters...)
		Expect(single.Body.String()).To(Equal(received), "byte by byte")
	},
		Entry("a message in JSON", typed(jsonType), secret, open),
		Entry("a message in JSON of another type", typed("text/plain"), secret, open),
		Entry("an event", typed(eventType), "id: 7\nevent: message\ndata: "+secret+"\n\n",
			"id: 7\nevent: message\ndata: "+open+"\n\n"),
		Entry("an event with carriage returns", typed(eventType), "data:"+secret+"\r\nid: 7\r\n\r\n",
			"data: "+open+"\nid: 7\n\n\n"),
		Entry("an event of several lines", typed(eventType),
			"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\ndata: {\"tools\":[{\"name\":\"secret\"}]}}\n\n",
			"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[]}}\n\n"),
		Entry("the second event", typed(eventType), "data: "+ping+"\n\ndata: "+secret+"\n\ndata: "+ping+"\n\n",
			"data: "+ping+"\n\ndata: "+open+"\n\ndata: "+ping+"\n\n"),
		Entry("an event after a byte order mark", typed(eventType), "\ufeffdata: "+secret+"\n\n", "data: "+open+"\n\n"),
		Entry(
			"an update of a resource",
			typed(eventType),
			"data: "+ping+"\n\nid: 7\ndata: "+updated(
				"a:secret",
			)+"\n\ndata: "+ping+"\n\n",
			"data: "+ping+"\n\ndata: "+ping+"\n\n",
		),
		Entry("an event that the end of the stream cuts off", typed(eventType), "data: "+secret+"\n",
			"data: "+open+"\n"),
		Entry("comments and other events", typed(eventType),
			": ping\n\nevent: endpoint\ndata: /m?x\n\nid: 1\ndata:\n\nretry: 5\n\n:\r\ndata: "+ping+"\r\n\r\n",
			":\n\nevent: endpoint\ndata: \n\nid: 1\ndata: \n\nretry: 5\n\n:\n\ndata: "+ping+"\n\n\n"),
		Entry("lines that end with other characters for some clients", typed(eventType),
			": x\u2028data: "+secret+"\nid: 7\u0085data: "+secret+"\n\nx\u2029: data: "+secret+"\ndata: "+
				`{"jsonrpc":"2.0","method":"a","params":{"x":"`+"\u2028\u2029\u0085"+`"}}`+"\n\n",
			":\n\ndata: "+`{"jsonrpc":"2.0","method":"a","params":{"x":"\u2028\u2029\u0085"}}`+"\n\n"),
		Entry("an event that is not JSON", typed(eventType),
			"id: 1\ndata: {\"result\":{\"tools\":[{\"name\":\"secret\"}\n\ndata: "+ping+"\n\n",
			"event: message\ndata: refused\n\ndata: "+ping+"\n\n"),
		Entry("a message that is not JSON", typed(jsonType), `{"result":{"tools":[{"name":"secret"}`, "refused"),
		Entry("a text that is not JSON", typed("text/plain"), "sorry", "sorry"),
		Entry("an encoded response", typed(jsonType, "Content-Encoding", "gzip"), secret, "refused"),
		Entry("events whose type is a parameter", typed("text/plain; x=text/event-stream"), "data: "+secret+"\n\n",
			"refused"),
		Entry("events with two types in one header", typed("text/plain, "+eventType), "data: "+secret+"\n\n",
			"refused"),
	)

	It("keeps no headers that describe the bytes of the unfiltered response", func() {
		digests := []string{"Content-Length", "65", "Etag", `"x"`, "Last-Modified", "x"}
		changed, _ := responding(typed(jsonType, digests...), secret)
		Expect(changed.Header()).
			To(And(HaveKeyWithValue("Content-Length", []string{fmt.Sprint(len(open))}), Not(HaveKey("Etag")),
				Not(HaveKey("Last-Modified")),
				HaveKeyWithValue("Cache-Control", []string{"no-store"})))
		stream, _ := responding(typed(eventType, digests...), "data: "+ping+"\n\n")
		Expect(stream.Header()).
			To(And(Not(HaveKey("Content-Length")), Not(HaveKey("Etag")), Not(HaveKey("Last-Modified"))))
		refused, _ := responding(typed(jsonType, append(digests, "Content-Encoding", "gzip")...), open)
		Expect(refused.Header()).To(And(Not(HaveKey("Content-Encoding")), Not(HaveKey("Content-Length"))))
		Expect(refused.Code).To(Equal(http.StatusBadGateway))
	})

	It("sends each event when it is complete", func() {
		recorder := httptest.NewRecorder()
		w := &Writer{To: recorder, Lists: hiding, Release: func() {}}
		w.Header().Set("Content-Type", eventType)
		_, _ = w.Write([]byte("data: " + ping + "\n\ndata: {"))
		Expect(w.FlushError()).To(Succeed())
		Expect(recorder.Body.String()).To(Equal("data: " + ping + "\n\n"))
		Expect(recorder.Flushed).To(BeTrue())
	})

	DescribeTable("passes nothing of a message beyond its limits",
		func(header http.Header, before, after string, length int, received string) {
			long := strings.Repeat("x", 1<<20)
			parts := []string{before}
			for range length {
				parts = append(parts, long)
			}
			response, _ := responding(header, append(parts, after)...)
			Expect(response.Body.String()).To(Equal(received))
		},
		Entry("of a length that no message has, in JSON", typed(jsonType), `{"result":{"x":"`, `"}}`, 16, "refused"),
		Entry("of a length that no message has, in an event", typed(eventType), `data: {"result":{"x":"`,
			"\"}}\n\ndata: "+ping+"\n\n", 16, "event: message\ndata: refused\n\ndata: "+ping+"\n\n"),
		Entry("of the memory, in JSON", typed(jsonType), `{"result":{"x":"`, `"}}`, 11, "refused"),
	)
})

// FuzzFilter checks that no client finds a hidden tool in what is left of a response, with any
// parser.
func FuzzFilter(f *testing.F) {
	f.Fuzz(func(t *testing.T, message []byte) {
		filtered, err := hiding.Filter(message)
		if err != nil {
			return
		}
		if filtered == nil {
			if !bytes.Contains(message, []byte("{")) {
				t.Fatalf("dropped %q", message)
			}
			return
		}
		again, err := hiding.Filter(filtered)
		if err != nil || string(again) != string(filtered) {
			t.Fatalf("filtered %q again to %q: %v", filtered, again, err)
		}
		if !json.Valid(message) {
			return
		}
		if !json.Valid(filtered) {
			t.Fatalf("made %q of %q", filtered, message)
		}
		var read struct { // ignores case, and takes the last of duplicates
			Result struct {
				Tools             []struct{ Name string }
				Prompts           []struct{ Name string }
				Resources         []struct{ URI string }
				ResourceTemplates []struct{ URITemplate string }
			}
		}
		var update struct {
			Method string
			Params struct{ URI string }
		}
		_ = json.Unmarshal(filtered, &update)
		if update.Method == "notifications/resources/updated" && !mayShow(update.Params.URI) {
			t.Fatalf("passes %q", filtered)
		}
		_ = json.Unmarshal(filtered, &read)
		names := fmt.Sprint(read)
		if strings.Contains(names, "secret") {
			t.Fatalf("shows %s of %q", names, filtered)
		}
	})
}

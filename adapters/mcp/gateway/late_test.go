package gateway

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/oauth"
)

// silent is an upstream that answers a call after the client has got the beginning of a stream.
type silent struct {
	heard  chan struct{}
	answer func(w http.ResponseWriter) error
}

// Forward implements Upstream.
func (s *silent) Forward(w http.ResponseWriter, _ *http.Request, _ message.Body, _ oauth.Caller,
	_ oauth.HostToken) error {
	<-s.heard
	return s.answer(w)
}

func answering(contentType, body string) func(http.ResponseWriter) error {
	return func(w http.ResponseWriter) error {
		w.Header().Set("Content-Type", contentType)
		_, err := io.WriteString(w, body)
		return err
	}
}

var _ = Describe("An upstream that is silent for long", Label("U4"), func() {
	ask := func(ctx context.Context, behind *silent, accept, body string) *http.Response {
		s := open(behind, func(*Options, *http.Server) {})
		s.gateway.silence = time.Millisecond
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/mcp", strings.NewReader(body))
		Expect(err).NotTo(HaveOccurred())
		r.Header.Set("Authorization", "Bearer "+alice)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", accept)
		answer, err := s.Client().Do(r)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(answer.Body.Close)
		return answer
	}
	const both = "application/json, text/event-stream"

	DescribeTable("gives a client a stream with the answer as its event:",
		func(ctx SpecContext, answer func(http.ResponseWriter) error, event string) {
			behind := &silent{heard: make(chan struct{}), answer: answer}
			got := ask(ctx, behind, both, call)
			Expect(got).To(HaveHTTPHeaderWithValue("Content-Type", "text/event-stream"))
			close(behind.heard)
			Expect(io.ReadAll(got.Body)).To(BeEquivalentTo(": ok\n\n" + event))
		},
		Entry("JSON", answering("application/json", "{\"jsonrpc\":\"2.0\",\n \"id\":1,\"result\":{}}"),
			"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"),
		Entry("a stream", answering("text/event-stream", "data: 1\n\ndata: 2\n\n"), "data: 1\n\ndata: 2\n\n"),
		Entry("a failure", func(http.ResponseWriter) error {
			return &Failure{Status: http.StatusBadGateway, Rule: "U9", Text: "it is down"}
		}, "event: message\ndata: "+
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32000,\"message\":\"it is down\"}}\n\n"),
		Entry("a failure after a part of the answer", func(w http.ResponseWriter) error {
			_ = answering("application/json", `{"jsonrpc":`)(w)
			return &Failure{Status: http.StatusBadGateway, Rule: "U9", Text: "it is down"}
		}, "event: message\ndata: "+
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32000,\"message\":\"it is down\"}}\n\n"),
		Entry("what is not an answer", answering("text/html", "<h1>"), "event: message\ndata: "+
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"`+unfiltered+`"}}`+"\n\n"),
		Entry("nothing", func(w http.ResponseWriter) error {
			w.WriteHeader(http.StatusOK)
			return nil
		}, "event: message\ndata: "+
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"`+unfiltered+`"}}`+"\n\n"),
	)

	DescribeTable("keeps others waiting:", func(ctx SpecContext, accept, body string) {
		behind := &silent{heard: make(chan struct{}), answer: answering("application/json", "{}")}
		time.AfterFunc(50*time.Millisecond, func() { close(behind.heard) })
		got := ask(ctx, behind, accept, body)
		Expect(got).To(HaveHTTPHeaderWithValue("Content-Type", "application/json"))
		Expect(io.ReadAll(got.Body)).To(BeEquivalentTo("{}"))
	},
		Entry("a client that accepts only JSON", "application/json", call),
		Entry("a client that accepts anything", "*/*", call),
		Entry("one that opens a session, whose id is in the header", both,
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`),
		Entry("a notification", both, `{"jsonrpc":"2.0","method":"notifications/initialized"}`),
	)
})

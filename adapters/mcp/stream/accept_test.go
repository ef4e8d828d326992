package stream

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/message"
)

var _ = Describe("A response to a client that accepts only JSON", Label("U22"), func() {
	var memory *message.BodyMemory
	BeforeEach(func() { memory = message.NewBodyMemory(8 << 20) })
	answer := func(request string, write func(w http.ResponseWriter)) *httptest.ResponseRecorder {
		GinkgoHelper()
		recorder, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Accept", "application/json")
		w, finish, ok := Negotiate(recorder, r, strings.HasPrefix(request, "["), memory.Reserve("ada"))
		Expect(ok).To(BeTrue())
		write(w)
		finish()
		return recorder
	}
	stream := func(parts ...string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", message.EventStream)
			for _, part := range parts {
				_, _ = io.WriteString(w, part)
				Expect(http.NewResponseController(w).Flush()).To(Succeed())
			}
		}
	}
	const progress = "event: message\nid: a_1\ndata: {\"method\":\"notifications/progress\"}\n\n"

	It("is a list for a batch, and 503 if the stream ends without an answer", func() {
		got := answer(`[{"id":1}]`, stream(progress, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"))
		Expect(got.Body.String()).To(Equal(`[{"jsonrpc":"2.0","id":1,"result":{}}]`))
		Expect(answer(`{"id":1}`, stream(progress)).Code).To(Equal(http.StatusServiceUnavailable))
	})

	It("is 503 if there is no memory for the answers, also those of other requests", Label("G19"), func() {
		large := "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"" + strings.Repeat("x", 1<<20) + "\"}\n\n"
		write := func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", message.EventStream)
			_, err := io.WriteString(w, large)
			Expect(err).To(MatchError(message.ErrNoMemory))
		}
		other := memory.Reserve("ada")
		Expect(other.Extend(1 << 20)).To(Succeed())
		got := answer(`[{"id":1}]`, write)
		Expect(got.Code).To(Equal(http.StatusServiceUnavailable))
		Expect(got.Body.String()).To(ContainSubstring(TooManyBodies))
		other.Release()
		Expect(answer(`[{"id":1}]`, func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", message.EventStream)
			_, _ = io.WriteString(w, large)
			Expect(other.Extend(1 << 20)).To(MatchError(message.ErrNoMemory))
		}).Code).To(Equal(http.StatusOK))
		Expect(other.Extend(1 << 20)).To(Succeed())
	})
})

var _ = Describe("The media types that a client accepts", Label("U22"), func() {
	accepts := func(mediaType, header string) bool {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		if header != "" {
			r.Header.Set("Accept", header)
		}
		return Accepts(r, mediaType)
	}

	It("include a stream, or not", func() {
		for _, header := range []string{
			"", "application/json, Text/Event-Stream", "text/*", "*/*", "text/event-stream;q=0.001",
			"application/json;q=0, text/event-stream", "text/event-stream, */*;q=0",
			"text/event-stream;x=1;q=0, text/event-stream",
		} {
			Expect(accepts(message.EventStream, header)).To(BeTrue(), header)
		}
		for _, header := range []string{
			"application/json", "application/json, */*;q=0", "text/* ; Q = 0.000", "text/event-stream;q=0;x=1",
		} {
			Expect(accepts(message.EventStream, header)).To(BeFalse(), header)
		}
	})
})

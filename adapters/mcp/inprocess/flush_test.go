package inprocess

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// flushes counts the flushes of a response before its end.
type flushes struct {
	http.ResponseWriter
	count *atomic.Int32
}

// FlushError is called by http.ResponseController.
func (f flushes) FlushError() error {
	f.count.Add(1)
	return http.NewResponseController(f.ResponseWriter).Flush()
}

var _ = Describe("Flushing a response", Label("G16"), func() {
	DescribeTable("of requests over HTTP:", func(ctx SpecContext, body string, old, early bool) {
		s, count := openSite(), new(atomic.Int32)
		s.mcp.responses.FlushDelay = time.Hour
		headers := modernHeaders(alice, "tools/call", "read")
		if old {
			opened := s.send(ctx, http.MethodPost, "/mcp", strings.Replace(initialize, "2025-11-25", "2025-03-26", 1),
				as(alice)...)
			headers = append(as(alice), "Mcp-Session-Id", opened.Header.Get("Mcp-Session-Id"))
		}
		handler := s.Config.Handler
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handler.ServeHTTP(flushes{w, count}, r)
		})
		answered := s.send(ctx, http.MethodPost, "/mcp", body, headers...)
		Expect(answered.StatusCode).To(Equal(http.StatusOK))
		Expect(answered.body).To(ContainSubstring("ran read"))
		Expect(count.Load() > 0).To(Equal(early))
	},
		Entry("the result of a call without a session is sent with the end",
			modern("tools/call", `"name":"read","arguments":{}`), false, false),
		Entry("the result of a call in a session is sent with the end", Label("2025-03-26"), call(2, "read"),
			true, false),
		Entry("the results of a batch are sent at once", Label("2025-03-26"),
			"["+call(2, "read")+","+call(3, "read")+"]", true, true),
	)
})

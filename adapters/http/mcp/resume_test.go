package mcp

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Resuming a stream", func() {
	It("sends the rest of a response to a client that lost its connection", func(ctx SpecContext) {
		s := openSite()
		session := s.session(ctx, alice)
		called := s.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...)
		_, begin, _ := strings.Cut(called.body, "id: ")
		begin, _, _ = strings.Cut(begin, "\n")
		on := func(session, token, id string) answer {
			return s.send(ctx, http.MethodGet, "/mcp", "", append(in(session, token), "Accept", "text/event-stream", "Last-Event-ID", id)...)
		}
		Expect(on(session, alice, begin).body).To(ContainSubstring("ran read"))
		Expect(on(s.session(ctx, alice), alice, begin).StatusCode).To(Equal(http.StatusBadRequest), "in another session")
		Expect(on(session, alice, strings.TrimSuffix(begin, "_0")+"_7").StatusCode).To(Equal(http.StatusBadRequest))
	})
})

package sdkserver

import (
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Guarding the endpoint", func() {
	var s *site
	BeforeEach(func() { s = openSite() })

	It("refuses a second origin", Label("G1"), func(ctx SpecContext) {
		got := s.send(ctx, http.MethodPost, "/mcp", "",
			append(as(alice), "Origin", "https://cms.example", "Origin", "https://evil.example")...)
		Expect(got.StatusCode).To(Equal(http.StatusForbidden))
	})

	It("does not look up an invalid token", Label("G6"), func(ctx SpecContext) {
		s.send(ctx, http.MethodPost, "/mcp", initialize, as("a b")...)
		s.send(ctx, http.MethodPost, "/mcp", initialize, as(strings.Repeat("a", 513))...)
		Expect(s.tokens.asked).To(BeEmpty())
	})

	DescribeTable("accepts the scheme in any case and with several spaces", Label("G4"),
		func(ctx SpecContext, scheme string) {
			got := s.send(ctx, http.MethodPost, "/mcp", initialize, "Authorization", scheme+alice)
			Expect(got.StatusCode).To(Equal(http.StatusOK))
		},
		Entry(nil, "bearer "), Entry(nil, "BEARER "), Entry(nil, "Bearer    "),
	)

	It("answers before it reads the body", Label("G13"), func(ctx SpecContext) {
		unread, writer := io.Pipe()
		defer writer.Close()
		r := s.request(ctx, http.MethodPost, "/mcp", "")
		r.Body, r.ContentLength = unread, 1<<20 // net/http itself reads the rest of a shorter body
		Expect(s.do(r).StatusCode).To(Equal(http.StatusUnauthorized))
	})

	It("treats a refusal of another kind as an outage", Label("G11"), func(ctx SpecContext) {
		s.tokens.set(func(t *tokens) { t.outage = oauth.Refuse(oauth.TemporarilyUnavailable, "G11", "busy") })
		got := s.send(ctx, http.MethodPost, "/mcp", initialize, as(alice)...)
		Expect(got.StatusCode).To(Equal(http.StatusServiceUnavailable))
	})

	It("removes the token before any tool runs", Label("G14"), func(ctx SpecContext) {
		session := s.session(ctx, alice)
		got := s.send(ctx, http.MethodPost, "/mcp", call(2, "whoami"), in(session, alice)...)
		Expect(got.body).To(ContainSubstring(`"text":"alice"`))
	})

	It("uses the configured clock, not the SDK's", func(ctx SpecContext) {
		s = openSite(func(o *Options) { o.Now = func() time.Time { return time.Time{}.AddDate(1998, 0, 0) } })
		s.tokens.set(func(t *tokens) {
			caller := t.callers[alice]
			caller.ExpiresAt = caller.ExpiresAt.AddDate(1999, 0, 0)
			t.callers[alice] = caller
		})
		Expect(s.send(ctx, http.MethodPost, "/mcp", initialize, as(alice)...).StatusCode).To(Equal(http.StatusOK))
	})
})

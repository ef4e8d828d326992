package sdkserver

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Selecting the transport of a request", func() {
	var s *site
	BeforeEach(func() { s = openSite() })

	DescribeTable("answers",
		func(ctx SpecContext, method, body string, headers []string, status int, part string) {
			got := s.send(ctx, method, "/mcp", body, append(headers, as(bob)...)...)
			Expect(got.StatusCode).To(Equal(status), got.body)
			Expect(got.body).To(ContainSubstring(part))
		},
		Entry("a modern body without its header", "POST", modern("tools/list", `"x":1`), nil, 400, "-32020"),
		Entry("a modern call with an encoded name", "POST", modern("tools/call", `"name":"read"`),
			[]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name",
				"=?base64?cmVhZA==?="}, 200, "ran read"),
		Entry("a modern call with an unknown session", "POST", modern("tools/call", `"name":"read"`),
			[]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "read",
				"Mcp-Session-Id", "none"}, 200, "ran read"),
		Entry("a DELETE without a session", "DELETE", "", nil, 400, "Mcp-Session-Id"),
	)

	DescribeTable("quotes input of refused requests only in JSON", Label("G17"),
		func(ctx SpecContext, method, body string, status int, headers ...string) {
			got := s.send(ctx, method, "/mcp", body, append(headers, as(bob)...)...)
			Expect(got.StatusCode).To(Equal(status))
			Expect(got.Header.Values("Content-Type")).To(Equal([]string{"application/json"}))
			var answer struct{ Error struct{ Message string } }
			Expect(json.Unmarshal([]byte(got.body), &answer)).To(Succeed(), got.body)
			Expect(answer.Error.Message).NotTo(Or(BeEmpty(), ContainSubstring("\n")))
		},
		Entry("a body", "POST", `<script>"`, 400),
		Entry("a revision", "POST", initialize, 400, "MCP-Protocol-Version", "2025-03-26<script>"),
		Entry("a session", "DELETE", "", 404, "Mcp-Session-Id", "<script>"),
	)

	It("allows only POST to revisions without sessions", func(ctx SpecContext) {
		got := s.send(ctx, http.MethodGet, "/mcp", "", append(as(alice), "MCP-Protocol-Version", "2026-07-28")...)
		Expect(got.Header.Get("Allow")).To(Equal("POST"))
	})

	It("refuses a method that no revision has", func(ctx SpecContext) {
		Expect(s.send(ctx, http.MethodPut, "/mcp", "", as(alice)...).StatusCode).To(Equal(http.StatusMethodNotAllowed))
	})

	It("opens a session for an initialize inside a batch", Label("2025-03-26"), func(ctx SpecContext) {
		body := "[" + strings.ReplaceAll(initialize, "2025-11-25", "2025-03-26") + "]"
		Expect(s.send(ctx, http.MethodPost, "/mcp", body, as(alice)...).Header.Get("Mcp-Session-Id")).NotTo(BeEmpty())
	})

	DescribeTable("refuses a message whose",
		Label("G16", "E9", "I16"), func(ctx SpecContext, end func(s *site, late *atomic.Bool)) {
			var late atomic.Bool
			s := openSite(func(o *Options) {
				o.Now = func() time.Time {
					if late.Load() {
						return time.Now().AddDate(1, 0, 0)
					}
					return time.Now()
				}
			})
			s.tokens.set(func(t *tokens) {
				caller := t.callers[alice]
				caller.ExpiresAt = time.Now().Add(time.Hour)
				t.callers[alice] = caller
			})
			sent, body := io.Pipe()
			answer := make(chan *http.Response, 1)
			go func() {
				defer GinkgoRecover()
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/mcp", sent)
				Expect(err).NotTo(HaveOccurred())
				for i, headers := 0, modernHeaders(alice, "tools/call", "read"); i < len(headers); i += 2 {
					r.Header.Set(headers[i], headers[i+1])
				}
				got, err := http.DefaultClient.Do(r)
				Expect(err).NotTo(HaveOccurred())
				answer <- got
			}()
			message := modern("tools/call", `"name":"read"`)
			_, err := body.Write([]byte(message[:10]))
			Expect(err).NotTo(HaveOccurred())
			Eventually(s.mcp.Idle).Should(BeFalse())
			end(s, &late)
			_, err = body.Write([]byte(message[10:]))
			Expect(err).NotTo(HaveOccurred())
			Expect(body.Close()).To(Succeed())
			got := <-answer
			Expect(got.StatusCode).To(Equal(http.StatusUnauthorized))
			Expect(got.Header.Get("WWW-Authenticate")).To(ContainSubstring(`error="invalid_token"`))
			Expect(got.Body.Close()).To(Succeed())
		},
		Entry("grant ends before the body has arrived", func(s *site, _ *atomic.Bool) { s.mcp.CloseGrant("A") }),
		Entry("token expires before the body has arrived", func(_ *site, late *atomic.Bool) { late.Store(true) }),
	)

	It("tells proxies not to buffer events", func(ctx SpecContext) {
		session := s.session(ctx, alice)
		got := s.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...)
		Expect(got.Header.Get("Content-Type")).To(Equal("text/event-stream"))
		Expect(got.Header.Get("X-Accel-Buffering")).To(Equal("no"))
	})
})

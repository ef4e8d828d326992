package sdkserver

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
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

	expectStepUp := func(got answer) {
		GinkgoHelper()
		Expect(got.StatusCode).To(Equal(http.StatusForbidden), got.body)
		Expect(got.Header.Values("WWW-Authenticate")).To(Equal([]string{`Bearer ` + metadata +
			`, error="insufficient_scope", error_description="The access token lacks a scope that this operation ` +
			`needs", scope="mcp:read mcp:write"`}))
		Expect(got.Header.Get("Cache-Control")).To(Equal("no-store"))
		Expect(got.body).
			To(MatchJSON(`{"error":"insufficient_scope","error_description":"The access token lacks a scope that ` +
				`this operation needs"}`))
	}

	It("names all scopes in one challenge in a session", Label("G10", "2025-11-25"), func(ctx SpecContext) {
		expectStepUp(s.send(ctx, http.MethodPost, "/mcp", call(2, "write"), in(s.session(ctx, alice), alice)...))
	})

	It("finds a call hidden in a batch", Label("G10", "2025-03-26"), func(ctx SpecContext) {
		batch := "[" + call(2, "read") + "," + call(3, "write") + "]"
		expectStepUp(s.send(ctx, http.MethodPost, "/mcp", batch,
			append(as(alice), "Mcp-Session-Id", s.session(ctx, alice))...))
	})

	It("looks at the arguments that the tool gets, also for a transport without a guard",
		Label("G10"), func(ctx SpecContext) {
			s := openSite(func(o *Options) {
				o.CallScopes = func(tool string, arguments map[string]any) oauth.Scopes {
					if tool == "read" && arguments["draft"] == true {
						return oauth.NewScopes("mcp:write")
					}
					return oauth.NewScopes("mcp:read")
				}
			})
			for arguments, refused := range map[string]bool{
				`{"draft":false}`:              false,
				`{"draft":true}`:               true,
				`{"draft":true,"Draft":false}`: true,
				`[true]`:                       false,
			} {
				body := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":` +
					arguments + `}}`
				got := s.send(ctx, http.MethodPost, "/mcp", body, in(s.session(ctx, alice), alice)...)
				Expect(got.StatusCode == http.StatusForbidden).To(Equal(refused), arguments)
			}
			theirs, ours := sdk.NewInMemoryTransports()
			_, err := s.sdk.Connect(ctx, ours, nil)
			Expect(err).NotTo(HaveOccurred())
			_, err = s.connect(ctx, theirs, "").
				CallTool(ctx, &sdk.CallToolParams{Name: "read", Arguments: map[string]any{"draft": true}})
			Expect(err).To(MatchError(ContainSubstring("insufficient scope")))
		})

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

var _ = Describe("Publishing the resource's metadata", Label("F6", "RFC 9728"), func() {
	It("has one document when the resource has no path", func(ctx SpecContext) {
		root := openSite(func(o *Options) { o.Resource = oauth.NewResource(issuer) })
		Expect(root.send(ctx, http.MethodGet, "/.well-known/oauth-protected-resource", "").body).
			To(ContainSubstring(`"resource":"https://cms.example"`))
		Expect(root.send(ctx, http.MethodPost, "/", initialize).challenge()).To(
			HavePrefix(`Bearer resource_metadata="https://cms.example/.well-known/oauth-protected-resource", `))
	})
})

// losable are server secrets that can become unreadable.
type losable struct{ lost atomic.Bool }

func (l *losable) Secrets() ([][]byte, error) {
	if l.lost.Load() {
		return nil, errors.New("the disk is gone")
	}
	return [][]byte{make([]byte, 32)}, nil
}

var _ = Describe("Binding sessions", Label("R2", "G14"), func() {
	It("answers 503 while no session id can be bound or opened", Label("G11"), func(ctx SpecContext) {
		secrets := new(losable)
		s := openSite(func(o *Options) { o.Sessions = seal.NewKeyRing(secrets) })
		session := s.session(ctx, alice)
		secrets.lost.Store(true)
		for _, answer := range []answer{
			s.send(ctx, http.MethodPost, "/mcp", initialize, as(alice)...),
			s.send(ctx, http.MethodGet, "/mcp", "", append(as(alice), "Accept", "text/event-stream")...),
			s.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...),
			s.send(ctx, http.MethodPost, "/mcp/message?sessionid="+session, call(2, "read"), as(alice)...),
		} {
			Expect(answer.StatusCode).To(Equal(http.StatusServiceUnavailable), answer.body)
			Expect(answer.Header.Get("Retry-After")).NotTo(BeEmpty())
			Expect(answer.Header).NotTo(HaveKey("Mcp-Session-Id"))
			Expect(answer.body).NotTo(ContainSubstring("disk"))
		}
		secrets.lost.Store(false)
		Expect(s.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).body).
			To(ContainSubstring("ran read"))
	})
})

package inprocess

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	missingChallenge = `Bearer ` + metadata + `, scope="mcp:read"`
	invalidChallenge = `Bearer ` + metadata +
		`, error="invalid_token", error_description="The access token is invalid or has expired", scope="mcp:read"`
	requestChallenge = `Bearer ` + metadata +
		`, error="invalid_request", error_description="Present exactly one bearer token, in the Authorization header"`
)

var _ = Describe("Guarding the endpoint", func() {
	var s *site
	BeforeEach(func() { s = openSite() })

	DescribeTable("refuses",
		func(ctx SpecContext, path string, headers []string, status int, challenge string) {
			got := s.send(ctx, http.MethodPost, path, initialize, headers...)
			Expect(got.StatusCode).To(Equal(status))
			Expect(got.Header.Values("WWW-Authenticate")).To(Equal([]string{challenge}))
			Expect(got.Header.Get("Cache-Control")).To(Equal("no-store"))
			Expect(got.Cookies()).To(BeEmpty())
		},
		Entry("a request without a token", Label("G3"), "/mcp", nil, 401, missingChallenge),
		Entry("a message without a token", Label("G3"), "/mcp/message?sessionid=x", nil, 401, missingChallenge),
		Entry("another scheme", Label("G4"), "/mcp", []string{"Authorization", "Basic YTpi"}, 401, missingChallenge),
		Entry("a scheme without a value", Label("G4"), "/mcp", []string{"Authorization", "Bearer"}, 401,
			missingChallenge),
		Entry("a token in the query only", Label("G5"), "/mcp?access_token="+alice, nil, 401, missingChallenge),
		Entry("a token in the query too", Label("G5"), "/mcp?access_token="+alice, as(alice), 400, requestChallenge),
		Entry("two headers", Label("G5"), "/mcp", append(as(alice), as(alice)...), 400, requestChallenge),
		Entry("an unknown token", Label("G7"), "/mcp", as("ppa_unknown"), 401, invalidChallenge),
		Entry("two words", Label("G6"), "/mcp", as("a b"), 401, invalidChallenge),
		Entry("a character outside the grammar", Label("G6"), "/mcp", as("ppa_{}"), 401, invalidChallenge),
		Entry("an equals sign inside", Label("G6"), "/mcp", as("ppa=a"), 401, invalidChallenge),
		Entry("only padding", Label("G6"), "/mcp", as("=="), 401, invalidChallenge),
		Entry("513 bytes", Label("G6"), "/mcp", as(strings.Repeat("a", 513)), 401, invalidChallenge),
	)

	It("does not look up an invalid token", Label("G6"), func(ctx SpecContext) {
		s.send(ctx, http.MethodPost, "/mcp", initialize, as("a b")...)
		s.send(ctx, http.MethodPost, "/mcp", initialize, as(strings.Repeat("a", 513))...)
		Expect(s.tokens.asked).To(BeEmpty())
	})

	It("sends an empty body when there is no token, and the same JSON body for every invalid token",
		Label("G3", "G7"), func(ctx SpecContext) {
			Expect(s.send(ctx, http.MethodPost, "/mcp", initialize).body).To(BeEmpty())
			unknown := s.send(ctx, http.MethodPost, "/mcp", initialize, as("ppa_unknown")...)
			Expect(unknown.body).
				To(MatchJSON(`{"error":"invalid_token","error_description":"The access token is invalid or has ` +
					`expired"}`))
			Expect(s.send(ctx, http.MethodPost, "/mcp", initialize, as("a b")...).body).To(Equal(unknown.body))
		})

	DescribeTable("accepts the scheme in any case and with several spaces", Label("G4"),
		func(ctx SpecContext, scheme string) {
			got := s.send(ctx, http.MethodPost, "/mcp", initialize, "Authorization", scheme+alice)
			Expect(got.StatusCode).To(Equal(http.StatusOK))
		},
		Entry(nil, "bearer "), Entry(nil, "BEARER "), Entry(nil, "Bearer    "),
	)

	DescribeTable("checks every method", Label("G13"),
		func(ctx SpecContext, method string) {
			got := s.send(ctx, method, "/mcp", "", "Accept", "text/event-stream")
			Expect(got.StatusCode).To(Equal(http.StatusUnauthorized))
			Expect(got.challenge()).To(Equal(missingChallenge))
			Expect(got.body).To(BeEmpty())
		},
		Entry(nil, http.MethodGet), Entry(nil, http.MethodHead), Entry(nil, http.MethodPost),
		Entry(nil, http.MethodDelete),
	)

	It("answers before it reads the body", Label("G13"), func(ctx SpecContext) {
		unread, writer := io.Pipe()
		defer writer.Close()
		r := s.request(ctx, http.MethodPost, "/mcp", "")
		r.Body, r.ContentLength = unread, 1<<20 // net/http itself reads the rest of a shorter body
		Expect(s.do(r).StatusCode).To(Equal(http.StatusUnauthorized))
	})

	It("accepts tokens of this resource only", Label("G8"), func(ctx SpecContext) {
		other := openSite(func(o *Options) { o.Resource = oauth.NewResource("https://cms.example/other") })
		got := other.send(ctx, http.MethodPost, "/other", initialize, as(alice)...)
		Expect(got.challenge()).To(ContainSubstring(`error="invalid_token"`))
		Expect(got.challenge()).To(ContainSubstring(`/.well-known/oauth-protected-resource/other"`))
	})

	It("answers 503 during an outage, without a challenge or internals", Label("G11"), func(ctx SpecContext) {
		s.tokens.set(func(t *tokens) { t.outage = errors.New("dial tcp 10.0.0.5:5432") })
		got := s.send(ctx, http.MethodPost, "/mcp", initialize, as(alice)...)
		Expect(got.StatusCode).To(Equal(http.StatusServiceUnavailable))
		Expect(got.Header.Get("Retry-After")).NotTo(BeEmpty())
		Expect(got.Header).NotTo(HaveKey("Www-Authenticate"))
		Expect(got.body).NotTo(ContainSubstring("10.0.0.5"))
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

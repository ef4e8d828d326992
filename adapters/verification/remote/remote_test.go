package remote

import (
	"bytes"
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/pasteport/pasteport/adapters/internal/outbound"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

func TestRemote(t *testing.T) {
	suite.Run(t, "Asking over HTTP")
}

const token = "site_token|with:signs"

// site is a TLS server of the site that gives every request the same answer.
type site struct {
	*httptest.Server
	answer http.HandlerFunc
	log    *bytes.Buffer
	asked  []*http.Request
	forms  []string
}

func newSite() *site {
	s := &site{log: new(bytes.Buffer)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		form, _ := io.ReadAll(r.Body)
		s.asked, s.forms = append(s.asked, r), append(s.forms, string(form))
		s.answer(w, r)
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	DeferCleanup(s.Close)
	return s
}

func (s *site) transport() Transport {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return Transport{Options: outbound.Options{RootCAs: roots}, Logger: slog.New(slog.NewTextHandler(s.log, nil))}
}

func (s *site) introspection(change ...func(*IntrospectionOptions)) *Verifier {
	o := IntrospectionOptions{
		Transport: s.transport(),
		URL:       s.URL + "/introspect",
		ClientID:  "paste port",
		Secret:    "pa&ss",
		Now:       time.Now,
	}
	for _, apply := range change {
		apply(&o)
	}
	return NewIntrospection(o)
}

func answering(status int, mediaType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// beUnavailable matches an outage of the verifier with a safe text.
func beUnavailable(reason string) types.GomegaMatcher {
	return And(MatchError(ContainSubstring(reason)), Not(MatchError(oauth.ErrUnknownBearer)),
		Not(MatchError(ContainSubstring(token))))
}

// outages are answers that say nothing about the token, from either kind of server.
var outages = []TableEntry{
	Entry("redirects", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}, "it answered 307"),
	Entry("has failed", answering(500, "text/plain", token), "it answered 500"),
	Entry("sends too much",
		answering(200, "application/json", `{"active":true,"x":"`+strings.Repeat("x", maxAnswer)+`"}`),
		"more than 65536 bytes"),
	Entry("repeats a member",
		answering(200, "application/json", `{"active":true,"roles":["reader"],"roles":["editor"]}`), "malformed"),
	Entry("closes the connection", func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}, "the connection broke"),
	Entry("repeats the token instead of HTTP", func(w http.ResponseWriter, r *http.Request) {
		connection, _, _ := http.NewResponseController(w).Hijack()
		_, _ = io.WriteString(connection, r.Header.Get("Authorization")+token+"\r\n\r\n")
		_ = connection.Close()
	}, "the connection broke"),
}

var _ = Describe("Verifying at a URL of the site", func() {
	var s *site
	BeforeEach(func() { s = newSite() })
	ask := func(ctx context.Context) (oauth.Principal, error) {
		return NewEndpoint(s.URL+"/token?key=k3y", s.transport()).VerifyBearer(ctx, token)
	}

	It("sends the token only as a bearer token", func(ctx SpecContext) {
		s.answer = answering(204, "", "")
		Expect(ask(ctx)).To(Equal(oauth.Principal{}))
		Expect(s.asked).To(HaveLen(1))
		Expect(s.asked[0].Method).To(Equal(http.MethodGet))
		Expect(s.asked[0].Header["Authorization"]).To(Equal([]string{"Bearer " + token}))
		Expect(s.asked[0].RequestURI).To(Equal("/token?key=k3y"))
		Expect(s.log.String()).To(BeEmpty())
	})

	DescribeTable("reads", func(ctx SpecContext, answer http.HandlerFunc, person oauth.Principal) {
		s.answer = answer
		Expect(ask(ctx)).To(Equal(person))
	},
		Entry("the principal",
			answering(200, "application/json; charset=utf-8",
				`{"subject":"ada","roles":["editor"],"scopes":["mcp"],"more":1}`),
			oauth.Principal{Subject: "ada", Roles: []string{"editor"}, Scopes: []string{"mcp"}}),
		Entry("the id of a token that is a number", answering(200, "application/json", `{"token_id":4711}`),
			oauth.Principal{TokenID: "4711"}),
		Entry("a member in another case", answering(200, "application/json", `{"subject":"ada","Scopes":[]}`),
			oauth.Principal{Subject: "ada", Scopes: []string{}}),
		Entry("nothing from empty members", answering(200, "application/json", `{"roles":null,"scopes":null}`),
			oauth.Principal{}),
	)

	DescribeTable("refuses the token after", Label("B8"), func(ctx SpecContext, status int) {
		s.answer = answering(status, "application/json", `{"subject":"eve"}`)
		_, err := ask(ctx)
		Expect(err).To(MatchError(oauth.ErrUnknownBearer))
		Expect(s.log.String()).To(BeEmpty())
	}, Entry("401", 401), Entry("403", 403))

	DescribeTable("reports an outage, and logs the cause, when the site",
		Label("B9", "B15"), func(ctx SpecContext, answer http.HandlerFunc, reason string) {
			s.answer = answer
			_, err := ask(ctx)
			Expect(err).To(beUnavailable(reason))
			Expect(s.log.String()).
				To(And(ContainSubstring("level=ERROR"), ContainSubstring(reason), ContainSubstring(s.URL+"/token"),
					Not(ContainSubstring(token)), Not(ContainSubstring("k3y"))))
		}, outages,
		Entry("writes a member in two cases", answering(200, "application/json", `{"scopes":["mcp"],"Scopes":[]}`),
			"malformed"),
		Entry("sends a number as the subject", answering(200, "application/json", `{"subject":7}`), "another type"),
	)

	DescribeTable("refuses without a request", func(ctx SpecContext, odd string) {
		_, err := NewEndpoint(s.URL, s.transport()).VerifyBearer(ctx, odd)
		Expect(err).To(MatchError(oauth.ErrUnknownBearer))
		Expect(s.asked).To(BeEmpty())
	}, Entry("an empty token", ""), Entry("a space", "a b"), Entry("a line break", "a\r\nX: y"),
		Entry("characters outside ASCII", "tökën"), Entry("a tab", "a\tb"))
})

var _ = Describe("Introspecting", Label("RFC 7662"), func() {
	var s *site
	BeforeEach(func() { s = newSite() })

	It("posts the token, with client id and secret encoded as in RFC 6749", func(ctx SpecContext) {
		s.answer = answering(200, "application/json",
			`{"active":true,"sub":"ada","jti":4711,"scope":"read","roles":["author"],"client_id":"x"}`)
		Expect(s.introspection().VerifyBearer(ctx, token)).
			To(Equal(oauth.Principal{Subject: "ada", TokenID: "4711", Roles: []string{"author"}}))
		Expect(s.forms).To(Equal([]string{"token=site_token%7Cwith%3Asigns"}))
		id, secret, _ := s.asked[0].BasicAuth()
		Expect([]string{s.asked[0].Method, id, secret}).To(Equal([]string{http.MethodPost, "paste+port", "pa%26ss"}))
		Expect(s.asked[0].Header.Get("Content-Type")).To(Equal("application/x-www-form-urlencoded"))
		Expect(s.log.String()).To(BeEmpty())
	})

	DescribeTable("uses scope as a ceiling only with ScopeCeiling",
		func(ctx SpecContext, body string, ceiling types.GomegaMatcher) {
			s.answer = answering(200, "application/json", body)
			person, err := s.introspection(func(o *IntrospectionOptions) {
				o.ScopeCeiling = true
			}).VerifyBearer(ctx, token)
			Expect(err).NotTo(HaveOccurred())
			Expect(person.Scopes).To(ceiling)
		},
		Entry("with an empty scope", `{"active":true,"scope":""}`, And(BeEmpty(), Not(BeNil()))),
		Entry("without the member", `{"active":true}`, And(BeEmpty(), Not(BeNil()))),
	)

	DescribeTable("refuses the token after", Label("B8"), func(ctx SpecContext, body string) {
		s.answer = answering(200, "application/json", body)
		at := time.Unix(1_800_000_000, 0)
		_, err := s.introspection(func(o *IntrospectionOptions) {
			o.Now = func() time.Time { return at }
		}).VerifyBearer(ctx, token)
		Expect(err).To(MatchError(oauth.ErrUnknownBearer))
		Expect(s.log.String()).To(BeEmpty())
	},
		Entry("an inactive token", `{"active":false,"sub":"ada"}`),
		Entry("a token that expires at this instant", `{"active":true,"exp":1800000000}`),
	)

	DescribeTable("reports an outage, and logs the cause, when the site",
		Label("B9", "B15"), func(ctx SpecContext, answer http.HandlerFunc, reason string) {
			s.answer = answer
			_, err := s.introspection().VerifyBearer(ctx, token)
			Expect(err).To(beUnavailable(reason))
			Expect(s.log.String()).To(And(ContainSubstring("level=ERROR"), ContainSubstring(s.URL+"/introspect"),
				Not(ContainSubstring(token)), Not(ContainSubstring("pa&ss"))))
		}, outages,
		Entry("does not accept our secret", answering(401, "application/json", `{"error":"invalid_client"}`),
			"does not accept our client id and secret"),
		Entry("omits active", answering(200, "application/json", `{"sub":"ada"}`), `has no "active"`),
		Entry("sends active as a string", answering(200, "application/json", `{"active":"true"}`), "malformed"),
		Entry("writes a member in two cases",
			answering(200, "application/json", `{"active":true,"Active":false}`), "malformed"),
	)
})

var _ = Describe("Connecting to the site", func() {
	var s *site
	BeforeEach(func() {
		s = newSite()
		s.answer = answering(204, "", "")
	})

	It("does not trust an unknown certificate", func(ctx SpecContext) {
		stranger := s.transport()
		stranger.RootCAs = x509.NewCertPool()
		_, err := NewEndpoint(s.URL, stranger).VerifyBearer(ctx, token)
		Expect(err).To(beUnavailable("its certificate is not trusted"))
		Expect(s.asked).To(BeEmpty())
	})

	It("times out", func(ctx SpecContext) {
		ended, end := context.WithCancel(ctx)
		gaveUp := make(chan struct{})
		s.answer = func(http.ResponseWriter, *http.Request) {
			end()
			<-gaveUp // not its own context: an answer that leaves while the connection closes may still arrive
		}
		_, err := NewEndpoint(s.URL, s.transport()).VerifyBearer(ended, token)
		close(gaveUp)
		Expect(err).To(beUnavailable("it did not answer in time"))
		Expect(NewEndpoint(s.URL, s.transport()).client.Timeout).To(BeNumerically("<", 5*time.Second))
	})
})

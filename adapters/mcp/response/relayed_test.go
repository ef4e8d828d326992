package response

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

// relayIn opens a stream of the person.
func relayIn(g *Registry, person string) *Writer {
	r := httptest.NewRequest(http.MethodGet, "/mcp", http.NoBody)
	s, _ := g.NewWriter(httptest.NewRecorder(), r, r.Context())
	g.add(s, &Identity{Sender: Sender{Caller: oauth.Caller{Subject: person}}, Token: "t"})
	s.Begin(message.ID{}, true)
	s.LimitStream()
	DeferCleanup(s.Finish)
	return s
}

// observer calls itself for each check of a token, and accepts all tokens.
type observer func(ctx context.Context)

// Authenticate implements Authorization.
func (a observer) Authenticate(ctx context.Context, _ string, _ oauth.Resource) (oauth.Caller, error) {
	a(ctx)
	return oauth.Caller{}, nil
}

// writeDeadline is a recorder of responses and of the last write deadline.
type writeDeadline struct {
	*httptest.ResponseRecorder
	until time.Time
}

// SetWriteDeadline is called by http.ResponseController.
func (d *writeDeadline) SetWriteDeadline(until time.Time) error {
	d.until = until
	return nil
}

// openStream begins a stream, of an upstream if it is relayed.
func openStream(relayed bool) (*Writer, *writeDeadline) {
	to := &writeDeadline{ResponseRecorder: httptest.NewRecorder()}
	g := NewRegistry(Options{Now: time.Now, Relays: relayed})
	g.KeepAlive = time.Hour
	r := httptest.NewRequest(http.MethodGet, "/mcp", http.NoBody)
	s, _ := g.NewWriter(to, r, r.Context())
	g.add(s, &Identity{Sender: Sender{Caller: oauth.Caller{Grant: "A"}}, Token: "t"})
	s.Begin(message.ID{}, true)
	DeferCleanup(s.Finish)
	return s, to
}

var _ = Describe("Keeping a relayed stream alive", Label("U4"), func() {
	DescribeTable("sends comments only between events:", func(chunks []string, between bool) {
		s, to := openStream(true)
		s.Header().Set("Content-Type", message.EventStream)
		s.WriteHeader(http.StatusOK)
		for _, chunk := range chunks {
			_, err := s.Write([]byte(chunk))
			Expect(err).NotTo(HaveOccurred())
		}
		s.comment()
		if between {
			Expect(to.Body.String()).To(HaveSuffix(": keep-alive\n\n"))
		} else {
			Expect(to.Body.String()).NotTo(ContainSubstring("keep-alive"))
		}
	},
		Entry("before the first", nil, true),
		Entry("after a whole one", []string{"data: a\n\n"}, true),
		Entry("after one that came in pieces", []string{"data: a", "\n", "\n"}, true),
		Entry("after one with carriage returns", []string{"data: a\r", "\n\r", "\n"}, true),
		Entry("in a line", []string{"data: a\n\ndata: "}, false),
		Entry("after a line", []string{"data: a\n"}, false),
		Entry("in an end", []string{"data: a\r\n\r"}, false),
	)

	It("sends no comment in a response that is no stream", func() {
		s, to := openStream(true)
		s.WriteHeader(http.StatusOK)
		s.comment()
		Expect(to.Body.String()).To(BeEmpty())
	})

	DescribeTable("sends a comment with the header when no event has come yet:",
		func(change func(s *Writer), comments int) {
			s, to := openStream(true)
			s.Header().Set("Content-Type", message.EventStream)
			change(s)
			s.WriteHeader(http.StatusOK)
			Expect(s.FlushError()).To(Succeed())
			Expect(s.FlushError()).To(Succeed())
			Expect(strings.Count(to.Body.String(), ": ok\n\n")).To(Equal(comments))
			Expect(to.Flushed).To(BeTrue())
		},
		Entry("in a stream", func(*Writer) {}, 1),
		Entry("not in the response to a call", func(s *Writer) { s.long = false }, 0),
		Entry("not in JSON", func(s *Writer) { s.Header().Set("Content-Type", "application/json") }, 0),
		Entry("not in a compressed body", func(s *Writer) { s.Header().Set("Content-Encoding", "gzip") }, 0),
		Entry("not in a body of a fixed length", func(s *Writer) { s.Header().Set("Content-Length", "9") }, 0),
		Entry("not after an event", func(s *Writer) { _, _ = s.Write([]byte("data: a\n\n")) }, 0),
	)

	It("sends no keep-alive comment in a compressed stream", func() {
		s, to := openStream(true)
		s.Header().Set("Content-Type", message.EventStream)
		s.Header().Set("Content-Encoding", "gzip")
		s.WriteHeader(http.StatusOK)
		s.comment()
		Expect(to.Body.String()).To(BeEmpty())
	})

	It("passes plain text of the upstream unchanged", func() {
		s, to := openStream(true)
		s.Header().Set("Content-Type", "text/plain")
		s.WriteHeader(http.StatusNotFound)
		_, err := s.Write([]byte("gone"))
		Expect(err).NotTo(HaveOccurred())
		Expect(to.Body.String()).To(Equal("gone"))
	})
})

// verdict is the same result for every token.
type verdict struct{ err error }

func (j verdict) Authenticate(context.Context, string, oauth.Resource) (oauth.Caller, error) {
	return oauth.Caller{}, j.err
}

var _ = Describe("Ending relayed responses", Label("G16", "I22"), func() {
	DescribeTable("ends with the grant, and a call some time after its token:",
		func(long bool, age time.Duration, revoked, ends bool) {
			s, _ := openStream(true)
			expiry := time.Now()
			s.long, s.ctx.identity.Caller.ExpiresAt = long, expiry
			s.registry.options.Now = func() time.Time { return expiry.Add(age) }
			s.registry.options.Authorization = verdict{}
			if revoked {
				s.registry.options.Authorization = verdict{oauth.RefuseUnknownToken()}
			}
			Expect(s.isUnauthorized()).To(Equal(ends))
		},
		Entry("a call", false, -time.Minute, false, false),
		Entry("a call whose grant has ended elsewhere", false, -time.Minute, true, true),
		Entry("a call whose token expires meanwhile", false, time.Minute, true, false),
		Entry("a call that does not end", false, callLimit, true, true),
		Entry("a stream", true, -time.Minute, false, false),
		Entry("a stream whose grant has ended elsewhere", true, -time.Minute, true, true),
	)

	It("checks a token without the recorder, which the handler uses concurrently", func() {
		s, _ := openStream(true)
		recorder := connection.Begin(context.Background(), connection.Origin{},
			func(came connection.Origin) connection.Origin {
				return came
			})
		s.ctx.Context = recorder
		asked := make(chan *connection.Recorder, 1)
		s.registry.options.Authorization = observer(func(ctx context.Context) { asked <- connection.From(ctx) })
		Expect(connection.From(s.ctx)).NotTo(BeNil())
		s.refresh()
		Expect(<-asked).To(BeNil())
	})

	DescribeTable("ends the oldest stream for a new one:",
		Label("G20"), func(limits oauth.Limits, other string, ends bool) {
			limited := 0
			o := Options{
				Relays:       true,
				StreamLimits: limits.WithDefaults(),
				Logger:       slog.New(slog.DiscardHandler),
				Limited: func(limit oauth.Limit, effect oauth.LimitEffect) {
					Expect(limit).To(Equal(oauth.LimitSessions))
					Expect(effect).To(Equal(oauth.LimitEvicted))
					limited++
				},
			}
			g := NewRegistry(o)
			first, second := relayIn(g, "alice"), relayIn(g, other)
			Expect(context.Cause(second.ctx)).To(Succeed())
			if !ends {
				Expect(context.Cause(first.ctx)).To(Succeed())
				Expect(limited).To(BeZero())
				return
			}
			Expect(context.Cause(first.ctx)).To(MatchError(ErrEvicted))
			Expect(limited).To(Equal(1))
			first.Finish()
			second.Finish()
			third := relayIn(g, "alice")
			Expect(context.Cause(third.ctx)).To(Succeed())
			Expect(limited).To(Equal(1))
		},
		Entry("of the same person, in any client", oauth.Limits{MaxSessionsPerPerson: 1}, "alice", true),
		Entry("of another person when all streams are taken", oauth.Limits{MaxSessions: 1}, "bob", true),
		Entry("but not of another person below the total limit", oauth.Limits{MaxSessionsPerPerson: 1}, "bob", false),
	)
})

var _ = Describe("Limiting how long a client may take to read a response", func() {
	It("renews the limit with every comment, and keeps it for the rest of the response", Label("G16"), func() {
		for _, relayed := range []bool{true, false} {
			s, to := openStream(relayed)
			_, err := s.Write([]byte("x"))
			Expect(err).NotTo(HaveOccurred())
			Expect(to.until).To(BeTemporally("~", time.Now().Add(writeTimeout), time.Second))
			to.until = time.Time{}.Add(1)
			s.comment()
			Expect(to.until).To(BeTemporally("~", time.Now().Add(writeTimeout), time.Second))
			until := to.until
			s.Finish()
			Expect(to.until).To(Equal(until))
		}
	})
})

var _ = Describe("Limiting how long a client may take to read a short response", Label("G16"), func() {
	It("sets the limit when the handler is done", func() {
		s, to := openStream(false)
		s.sendComments, s.long, s.limited, to.until = false, false, false, time.Time{}
		_, err := s.Write([]byte("x"))
		Expect(err).NotTo(HaveOccurred())
		Expect(to.until).To(BeZero())
		s.Finish()
		Expect(to.until).To(BeTemporally("~", time.Now().Add(writeTimeout), time.Second))
	})
})

var _ = Describe("Limiting how long a client may take to read a response that is not a stream", Label("G16"), func() {
	DescribeTable("sets a limit", func(relayed bool, write func(s *Writer), limited bool) {
		s, to := openStream(relayed)
		s.sendComments, s.long, s.limited, to.until = false, false, false, time.Time{}
		write(s)
		Expect(to.until.IsZero()).To(Equal(!limited))
	},
		Entry("for more than the buffer of the server", false, func(s *Writer) {
			_, _ = s.Write(make([]byte, buffered+1))
		}, true),
		Entry("but not for less", false, func(s *Writer) { _, _ = s.Write(make([]byte, buffered)) }, false),
		Entry("nor for a short answer of an upstream", true, func(s *Writer) { _, _ = s.Write([]byte("{}")) }, false),
		Entry("for an event, which is flushed", true, func(s *Writer) {
			s.Header().Set("Content-Type", message.EventStream)
			_, _ = s.Write([]byte("data: x\n\n"))
		}, true),
		Entry("for bytes after a limited write", false, func(s *Writer) {
			s.limited = true
			_, _ = s.Write([]byte("x"))
		}, true),
	)
})

package stream

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

// observer calls itself for each check of a token, and accepts all tokens.
type observer func(ctx context.Context)

// Authenticate implements Authorization.
func (a observer) Authenticate(ctx context.Context, _ string, _ oauth.Resource) (oauth.Caller, error) {
	a(ctx)
	return oauth.Caller{}, nil
}

// writeDeadline is a recorder of responses and of write deadlines.
type writeDeadline struct {
	*httptest.ResponseRecorder
	until []time.Time
	err   error // of writes
}

func (d *writeDeadline) Write(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	return d.ResponseRecorder.Write(p)
}

// SetWriteDeadline is called by http.ResponseController.
func (d *writeDeadline) SetWriteDeadline(until time.Time) error {
	d.until = append(d.until, until)
	return nil
}

// openStream begins a stream, of an upstream if it is relayed.
func openStream(relayed bool) (*Writer, *writeDeadline) {
	to := &writeDeadline{ResponseRecorder: httptest.NewRecorder()}
	g := NewRegistry(Options{Now: time.Now, Relays: relayed, Authorization: verdict{}})
	g.KeepAlive = time.Hour
	r := httptest.NewRequest(http.MethodGet, "/mcp", http.NoBody)
	s, _ := g.NewWriter(to, r, r.Context())
	s.Identify(&Identity{Sender: Sender{Caller: oauth.Caller{Grant: "A"}}, Token: "t"})
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
		s.refresh()
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
			Expect(s.isUnauthorized(long)).To(Equal(ends))
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
		recorder := attempt.Begin(context.Background(), "R", "", "")
		s.ctx.Context = recorder
		asked := make(chan *attempt.Recorder, 1)
		s.registry.options.Authorization = observer(func(ctx context.Context) { asked <- attempt.From(ctx) })
		Expect(attempt.From(s.ctx).Request()).To(Equal("R"))
		s.refresh()
		Expect((<-asked).Request()).To(BeEmpty())
	})
})

var _ = Describe("Limiting how long a client may take to read a response", Label("G16"), func() {
	DescribeTable("limits each write, and removes the limit, which would end an idle stream over HTTP/2:",
		func(send func(s *Writer)) {
			for _, relayed := range []bool{true, false} {
				s, to := openStream(relayed)
				limit := s.registry.WriteLimit
				to.until = nil
				send(s)
				Expect(to.until).To(HaveExactElements(BeTemporally("~", time.Now().Add(limit), time.Second), BeZero()))
				s.Finish()
				Expect(to.until[2]).To(BeTemporally("~", time.Now().Add(limit), time.Second), "the rest")
			}
		},
		Entry("of a part", func(s *Writer) { _, _ = s.Write([]byte("x")) }),
		Entry("of what is flushed", func(s *Writer) { _ = s.FlushError() }),
		Entry("of a comment", func(s *Writer) {
			s.isEvents = true
			s.refresh()
		}),
	)

	It("limits each part of a long write, so that a slow client gets it", func() {
		s, to := openStream(false)
		to.until = nil
		Expect(s.Write(make([]byte, writeSize+1))).To(Equal(writeSize + 1))
		Expect(to.until).To(HaveLen(3))
	})

	It("ends the response of a client that does not read", func() {
		s, to := openStream(false)
		to.err = os.ErrDeadlineExceeded
		_, err := s.Write([]byte("x"))
		Expect(err).To(MatchError(os.ErrDeadlineExceeded))
		Expect(context.Cause(s.Context())).To(MatchError(os.ErrDeadlineExceeded))
	})
})

func TestResponse(t *testing.T) { suite.Run(t, "Responses that end with their grant") }

var _ = Describe("Closing the responses of an ended grant or token", Label("G16", "E9"), func() {
	tokenOf := func(letter string) string { return string(oauth.AccessTokenSecret) + strings.Repeat(letter, 42) + "A" }

	DescribeTable("ends", func(long, relayed bool, ended oauth.Ended, ends bool) {
		s, _ := openStream(relayed)
		s.long, s.ctx.identity.Token = long, tokenOf("B")
		s.registry.End(ended)
		Expect(s.ctx.Err() != nil).To(Equal(ends))
	},
		Entry("a stream of an ended grant", true, false, endedGrants("x", "A"), true),
		Entry("a call of an ended grant", false, false, endedGrants("A"), true),
		Entry("no stream of another grant", true, false, endedGrants("B"), false),
		Entry("a stream whose token was revoked", true, false,
			oauth.Ended{Tokens: []oauth.Digest{{}, oauth.DigestOf(tokenOf("B"))}}, true),
		Entry("no stream of another token of the grant", true, false,
			oauth.Ended{Tokens: []oauth.Digest{oauth.DigestOf(tokenOf("C"))}}, false),
		Entry("no call whose token was revoked, because it may finish", false, false,
			oauth.Ended{Tokens: []oauth.Digest{oauth.DigestOf(tokenOf("B"))}}, false),
		Entry("a relayed call whose token was revoked, because it may never finish", false, true,
			oauth.Ended{Tokens: []oauth.Digest{oauth.DigestOf(tokenOf("B"))}}, true),
		Entry("nothing when nothing has ended", true, true, oauth.Ended{}, false),
	)
})

// slowSession takes long to close.
type slowSession struct{ closing chan struct{} }

// ID implements Session.
func (slowSession) ID() string { return "slow" }

// End implements Session.
func (s slowSession) End(error) { <-s.closing }

// endedSession reports the cause of its end.
type endedSession struct {
	id     string
	causes chan error
}

// ID implements Session.
func (s endedSession) ID() string { return s.id }

// End implements Session.
func (s endedSession) End(cause error) { s.causes <- cause }

var _ = Describe("A session that is not used", Label("G20"), func() {
	var registry *Registry
	open := func(id string) endedSession {
		GinkgoHelper()
		session := endedSession{id, make(chan error, 1)}
		Expect(registry.AddSession(session, &oauth.Caller{Grant: "A", Subject: "ann"})).To(BeTrue())
		return session
	}

	DescribeTable("is told why it ends", func(end func(), cause error) {
		registry = NewRegistry(Options{Now: time.Now, Limits: oauth.DefaultLimits()})
		session := open("session")
		end()
		Eventually(session.causes).Should(Receive(MatchError(cause)))
	},
		Entry("when its grant has ended", func() { registry.End(endedGrants("A")) }, ErrEnded),
		Entry("when the service shuts down", func() { registry.Drain() }, ErrDraining),
	)
})

var _ = Describe("A session whose last grant has ended", Label("G14", "G16"), func() {
	It("accepts no further request while it closes, also not of a new grant", func() {
		session := slowSession{make(chan struct{})}
		DeferCleanup(func() { close(session.closing) })
		set := NewRegistry(Options{Now: time.Now, Limits: oauth.DefaultLimits()})
		Expect(set.AddSession(session, &oauth.Caller{Grant: "A", Subject: "ann"})).To(BeTrue())
		Expect(set.UseSession("slow", "B")).To(BeTrue())
		set.End(endedGrants("A"))
		Expect(set.UseSession("slow", "B")).To(BeTrue())
		set.End(endedGrants("B"))
		Expect(set.UseSession("slow", "C")).To(BeFalse())
		set.RemoveSession("slow")
		Expect(set.UseSession("slow", "C")).To(BeFalse(), "the handler may still know it for a moment")
		Expect(set.AddSession(session, &oauth.Caller{Grant: "B", Subject: "ann"})).
			To(BeFalse(), "its request began before the grant ended")
	})
})

func endedGrants(ids ...string) oauth.Ended {
	ended := oauth.Ended{Grants: map[string]oauth.EndedGrant{}}
	for _, id := range ids {
		ended.Grants[id] = oauth.EndedGrant{}
	}
	return ended
}

var _ = Describe("The context of a response", Label("G16"), func() {
	var (
		request context.Context
		hangUp  context.CancelFunc
		answer  *responseContext
		cause   = errors.New("the grant has ended")
	)
	BeforeEach(func() {
		request, hangUp = context.WithCancel(context.WithValue(context.Background(), identityKey{}, "of the request"))
		DeferCleanup(hangUp)
		answer = newContext(request)
	})

	It("ends with its cause, and leaves the context of the request alone", func() {
		before, cancel := context.WithCancel(answer)
		defer cancel()
		answer.end(cause)
		Expect(before.Done()).To(BeClosed())
		Expect(context.Cause(before)).To(MatchError(cause))
		Expect(context.Cause(answer)).To(MatchError(cause))
		Expect(request.Err()).To(Succeed())
	})

	It("returns the identity of its caller as soon as it is known, also after the end", func() {
		Expect(answer.Value(identityKey{})).To(Equal("of the request"))
		answer.identity = &Identity{Sender: Sender{Caller: oauth.Caller{Grant: "A"}}}
		answer.end(nil)
		Expect(answer.Value(identityKey{})).To(BeIdenticalTo(answer.identity))
	})
})

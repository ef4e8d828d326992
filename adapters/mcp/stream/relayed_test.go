package stream

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
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

	It("sends no comment in a response that is no stream", func() {
		s, to := openStream(true)
		s.WriteHeader(http.StatusOK)
		s.refresh()
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
		s.refresh()
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

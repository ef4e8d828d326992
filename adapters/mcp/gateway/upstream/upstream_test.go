package upstream

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/sony/gobreaker/v2"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/gateway/check"
	"github.com/pasteport/pasteport/domain/oauth"

	"github.com/pasteport/pasteport/features/suite"
)

func TestUpstream(t *testing.T) {
	suite.Run(t, "Forwarding to an upstream")
}

// fakeSessions binds a session by appending its owner.
type fakeSessions struct{}

func (fakeSessions) BindSession(session, owner string) (string, error) {
	return session + "@" + owner, nil
}

func (fakeSessions) OpenSession(bound, owner string) (session string, ok bool, err error) {
	session, ok = strings.CutSuffix(bound, "@"+owner)
	return session, ok, nil
}

func open(change ...func(*Options)) *Upstream {
	GinkgoHelper()
	o := Options{
		URL:         "http://127.0.0.1:9000/base/sse?key=1",
		MessagePath: "/mcp/message",
		Credential:  None{},
		Sessions:    fakeSessions{},
		Logger:      slog.New(slog.DiscardHandler),
	}
	for _, apply := range change {
		apply(&o)
	}
	u, err := New(o)
	Expect(err).NotTo(HaveOccurred())
	return u
}

// received returns what a client reads of a stream of the upstream, which sends it through pieces.
func received(u *Upstream, sent string, pieces func(io.Reader) io.Reader) (string, error) {
	x := &forwarding{target: u.url}
	x.sender.Subject = "ada"
	answer := &http.Response{Header: http.Header{"Content-Length": {"1"}},
		Body: io.NopCloser(pieces(strings.NewReader(sent)))}
	u.rewriteEndpoint(answer, x)
	Expect(answer.Header).To(BeEmpty())
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

func announced(path string) string {
	return "event: endpoint\ndata: /mcp/message?endpoint=endpoint-" +
		base64.RawURLEncoding.EncodeToString([]byte(path)) + "%40" +
		oauth.Caller{Subject: "ada"}.SessionOwner(oauth.Resource{}) + "\n\n"
}

var _ = Describe("The endpoint event", Label("U13"), func() {
	atOnce := func(r io.Reader) io.Reader { return r }
	long := strings.Repeat("x", 3*8<<10) // more than is held back
	for size, pieces := range map[string]func(io.Reader) io.Reader{"at once": atOnce,
		"byte by byte": iotest.OneByteReader, "with its end": iotest.DataErrReader} {
		DescribeTable("of a stream that arrives "+size+" is rewritten in every event of that type:",
			func(sent, read string) {
				Expect(received(open(), sent, pieces)).To(Equal(read))
			},
			Entry("a path", "event: endpoint\ndata: /m?s=1\n\ndata: x\n\n", announced("/m?s=1")+"data: x\n\n"),
			Entry("a relative path", "event: endpoint\ndata: m?s=1\n\n", announced("/base/m?s=1")),
			Entry("an absolute URL", "event: endpoint\ndata: http://127.0.0.1:9000/m\n\n", announced("/m")),
			Entry("without spaces, with carriage returns", "event:endpoint\r\ndata:/m\r\n\r\n", announced("/m")+"\n"),
			Entry("with lone carriage returns", "event: endpoint\rdata: /m\r\r", announced("/m")),
			Entry("after another type", "event: message\nevent: endpoint\ndata: /m\n\n", announced("/m")),
			Entry("before another type", "event: endpoint\nevent: message\ndata: /m\n\n", announced("/m")),
			Entry("without data", "event: endpoint\n\n", announced("/base/sse?key=1")),
			Entry("again", "event: endpoint\ndata: /m\n\nevent: endpoint\ndata: /n\n\n",
				announced("/m")+announced("/n")),
			Entry("after a long comment", ": "+long+"\n\nevent: endpoint\ndata: /m\n\n",
				": "+long+"\n\n"+announced("/m")),
			Entry("after a long event", "data: "+long+"\n\nevent: endpoint\ndata: /m\n\n",
				"data: "+long+"\n\n"+announced("/m")),
			Entry("in another order, with an id", "id: 1\ndata: /m\nevent: endpoint\n\n", announced("/m")),
			Entry("after comments", ": hello\n\n: again\nevent: endpoint\ndata: /m\n\n",
				": hello\n\n: again\n"+announced("/m")),
			Entry("after another event", "event: message\ndata: /m\n\nevent: endpoint\ndata: /m\n\n",
				"event: message\ndata: /m\n\n"+announced("/m")),
			Entry("not in an event without a name", "data: {}\n\n", "data: {}\n\n"),
			Entry("of an incomplete event", "event: endpoint\ndata: /m", announced("/m")),
			Entry("not in a long line", "data: "+long+"\n\n", "data: "+long+"\n\n"),
			Entry("not in its words", "event: endpoints\ndata: event: endpoint\n\n",
				"event: endpoints\ndata: event: endpoint\n\n"),
			Entry("of an empty stream", "", ""),
		)
	}

	DescribeTable("ends the stream before a client can act on an endpoint event that is hidden", func(sent string) {
		for _, pieces := range []func(io.Reader) io.Reader{atOnce, iotest.OneByteReader} {
			read, err := received(open(), sent, pieces)
			Expect(err).To(MatchError(errEndpoint))
			Expect(read).NotTo(ContainSubstring("evil.example\n\n"))
		}
	},
		Entry("behind its address and a long line", "data: http://evil.example\n: "+long+"\nevent: endpoint\n\n"),
		Entry("behind a long comment", ": "+long+"\nevent: endpoint\ndata: http://evil.example\n\n"),
		Entry("behind the beginning of a long event", "event: endpoint\n: "+long+"\ndata: http://evil.example\n\n"),
		Entry("at the end of a long event without an end", "data: http://evil.example\n: "+long+"\nevent: endpoint"),
		Entry("for clients that end lines as Unicode does",
			"data: x\u2028event: endpoint\u2028data: http://evil.example\n\n"),
		Entry("for clients that end lines as Python does",
			"data: x\u0085event: endpoint\x1cdata: http://evil.example\n\n"),
	)

	DescribeTable("ends the stream if it has another origin:", func(address string) {
		read, err := received(open(), "event: endpoint\ndata: "+address+"\n\n", atOnce)
		Expect(err).To(MatchError("the message endpoint is at another origin"))
		Expect(read).To(BeEmpty())
	},
		Entry(nil, "http://127.0.0.1:9001/"), Entry(nil, "https://127.0.0.1:9000/"), Entry(nil, "//evil.example/"),
		Entry(nil, "http://127.0.0.1:9000@evil.example/"), Entry(nil, "http://127.0.0.1:9000//evil.example/m"),
		Entry(nil, "/.//evil.example/m"), Entry(nil, "http://%zz"))

	It("is opened again for its owner only", func() {
		u := open()
		bound := "endpoint-" + base64.RawURLEncoding.EncodeToString([]byte("/m?s=1")) + "@A"
		to, err := u.openEndpoint(map[string][]string{"endpoint": {bound}}, "A")
		Expect(err).NotTo(HaveOccurred())
		Expect(to.String()).To(Equal("http://127.0.0.1:9000/m?s=1"))
		for _, other := range []string{"", "x@A", "endpoint-!@A", bound + "x"} {
			_, err = u.openEndpoint(map[string][]string{"endpoint": {other}}, "A")
			Expect(err).To(MatchError(ContainSubstring("not found")), other)
		}
		for _, elsewhere := range []string{"//evil.example/m", "http://evil.example/m"} {
			to, err = u.openEndpoint(
				map[string][]string{
					"endpoint": {"endpoint-" + base64.RawURLEncoding.EncodeToString([]byte(elsewhere)) + "@A"}}, "A")
			Expect(err).NotTo(HaveOccurred())
			Expect(to.Host).To(Equal("127.0.0.1:9000"))
		}
		_, err = u.openEndpoint(
			map[string][]string{"endpoint": {base64.RawURLEncoding.EncodeToString([]byte("/m")) + "@A"}}, "A")
		Expect(err).To(MatchError(ContainSubstring("not found")), "a session id is no endpoint")
		_, err = u.openEndpoint(map[string][]string{"endpoint": {bound}}, "B")
		Expect(err).To(MatchError(ContainSubstring("not found")))
	})
})

var _ = Describe("Checking configured headers", Label("U5"), func() {
	DescribeTable("refuses", func(name string) { Expect(CheckHeader(name)).NotTo(Succeed()) },
		Entry(nil, "cookie"), Entry(nil, "authorization"), Entry(nil, "X-PASTEPORT-Subject"),
		Entry(nil, "x-forwarded-for"), Entry(nil, "X_Toolsets"), Entry(nil, "Mcp-Session-Id"),
		Entry(nil, ""), Entry(nil, "a b"), Entry(nil, "a:b"), Entry(nil, "Connection"), Entry(nil, "signature"))

	It("accepts others", func() { Expect(CheckHeader("x-toolsets")).To(Succeed()) })
})

// roundTripper is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (s roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

var _ = Describe("The circuit breaker of an upstream", Label("U10"), func() {
	var asked int
	var result error
	var t *transport
	BeforeEach(func() {
		asked, result = 0, errors.New("no route")
		t = newTransport(open().options, time.Minute)
		t.next = roundTripper(func(r *http.Request) (*http.Response, error) {
			asked++
			if result != nil {
				return nil, result
			}
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})
	})
	ask := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/", http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		answer, err := t.RoundTrip(r)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}

	It("opens after five failures in a row", func(ctx SpecContext) {
		for range failuresInARow {
			Expect(ask(ctx)).To(MatchError("The MCP server behind this gateway cannot be reached"))
		}
		Expect(ask(ctx)).
			To(And(MatchError(gobreaker.ErrOpenState), HaveField("Status", http.StatusServiceUnavailable),
				HaveField("Rule", "U10")))
		Expect(asked).To(Equal(failuresInARow))
	})

	It("remembers the failed call after it admits a probe", Label("U31"), func(ctx SpecContext) {
		next := t.next
		t = newTransport(open().options, time.Millisecond)
		t.next = next
		for range failuresInARow {
			Expect(ask(ctx)).NotTo(Succeed())
		}
		Eventually(t.breaker.State).WithContext(ctx).WithTimeout(time.Minute).Should(Equal(gobreaker.StateHalfOpen))
		Expect(t.health()).To(MatchError(ContainSubstring("the last call failed")))
		result = nil
		Expect(ask(ctx)).To(Succeed())
		Expect(t.health()).To(Succeed())
	})

	DescribeTable("believes a check that finds the server working after a failed call",
		Label("U31"), func(age time.Duration, before []check.State, believed bool) {
			c := newCalls()
			c.end(errors.New("no"))
			c.at = c.at.Add(-age)
			for _, state := range before {
				c.checked(time.Now(), check.Result{State: state})
			}
			c.checked(time.Now(), check.Result{State: check.RefusesKeys})
			Expect(c.health() == nil).To(Equal(believed))
		},
		Entry("not at once, because calls may ask for more", time.Duration(1), nil, false),
		Entry("if an earlier check has confirmed the outage", time.Duration(1), []check.State{check.Down}, true),
		Entry("if the call was long ago", settled, nil, true),
	)

	It("closes when the probe is only slow", func(ctx SpecContext) {
		next := t.next
		t = newTransport(open().options, 20*time.Millisecond)
		t.next, t.probe = next, 20*time.Millisecond
		for range failuresInARow {
			Expect(ask(ctx)).NotTo(Succeed())
		}
		slow, answer := make(chan struct{}), make(chan struct{})
		DeferCleanup(func() { close(answer) })
		t.next = roundTripper(func(*http.Request) (*http.Response, error) {
			close(slow)
			<-answer
			return nil, context.Canceled
		})
		Eventually(t.breaker.State).WithContext(ctx).WithTimeout(time.Minute).Should(Equal(gobreaker.StateHalfOpen))
		go func() { _ = ask(ctx) }()
		Eventually(slow).WithContext(ctx).WithTimeout(time.Minute).Should(BeClosed())
		t.next = roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})
		Eventually(ask).WithContext(ctx).WithTimeout(time.Minute).WithArguments(ctx).Should(Succeed())
	}, SpecTimeout(2*time.Minute))

	DescribeTable("counts a status as a failure:", func(ctx SpecContext, status int, counts bool) {
		t.next = roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Body: http.NoBody}, nil
		})
		for range failuresInARow {
			Expect(ask(ctx)).To(Succeed())
		}
		Expect(ask(ctx) != nil).To(Equal(counts))
	}, Entry(nil, 502, true), Entry(nil, 503, true), Entry(nil, 504, true), Entry(nil, 500, false),
		Entry(nil, 401, false))

	It("releases the context of a response when its body is closed", func(ctx SpecContext) {
		var kept context.Context
		t.next = roundTripper(func(r *http.Request) (*http.Response, error) {
			kept = r.Context()
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})
		Expect(ask(ctx)).To(Succeed())
		Expect(kept.Err()).To(HaveOccurred())
	})

	It("counts neither failures between successes nor requests that clients cancel", func(ctx SpecContext) {
		gone, leave := context.WithCancel(ctx)
		leave()
		for i := range 5 * failuresInARow {
			if result = errors.New("no route"); i%failuresInARow == 0 {
				result = nil
			}
			_ = ask(ctx)
			result = context.Canceled
			Expect(ask(gone)).To(MatchError(context.Canceled))
		}
		Expect(asked).To(Equal(10 * failuresInARow))
	})

	It("limits the wait for the response to a message, but not to a stream", func(ctx SpecContext) {
		t.patience = time.Millisecond
		t.next = roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, fmt.Errorf("cut: %w", r.Context().Err())
		})
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/", http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		_, err = t.RoundTrip(r)
		Expect(err).To(And(MatchError(errTimeout), HaveField("Status", http.StatusGatewayTimeout)))
		short, end := context.WithTimeout(ctx, 50*time.Millisecond)
		defer end()
		Expect(ask(short)).To(MatchError(context.DeadlineExceeded))
	})
})

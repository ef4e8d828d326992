package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/features/suite"
)

func TestUpstream(t *testing.T) {
	suite.Run(t, "Forwarding to an upstream")
}

var config = gateway.Config{Logger: slog.New(slog.DiscardHandler)}.WithDefaults()

// roundTripper is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (s roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

var _ = Describe("An upstream that fails", Label("U10"), func() {
	var asked int
	var result error
	var t *transport
	BeforeEach(func() {
		asked, result = 0, errors.New("no route")
		t = newTransport(config)
		t.pause = time.Minute
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

	It("gets none either although an idle connection was closed between two failures", func(ctx SpecContext) {
		failing := t.next
		for failed := range failuresInARow {
			if failed == failuresInARow-1 {
				t.next = roundTripper(func(r *http.Request) (*http.Response, error) {
					httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{Reused: true})
					return nil, io.EOF
				})
				Expect(ask(ctx)).NotTo(Succeed())
				t.next = failing
			}
			Expect(ask(ctx)).NotTo(MatchError(errDown))
		}
		Expect(ask(ctx)).To(MatchError(errDown))
	})

	It("gets requests after a pause, and no pause after a success", func(ctx SpecContext) {
		for range failuresInARow {
			Expect(ask(ctx)).NotTo(Succeed())
		}
		t.pause = 0
		Expect(ask(ctx)).NotTo(MatchError(errDown))
		t.pause = time.Minute
		Expect(ask(ctx)).To(MatchError(errDown))
		t.pause, result = 0, nil
		Expect(ask(ctx)).To(Succeed())
		t.pause, result = time.Minute, errors.New("no route")
		Expect(ask(ctx)).NotTo(MatchError(errDown))
	})

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
		t.config.Patience = time.Millisecond
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

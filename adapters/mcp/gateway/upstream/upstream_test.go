package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
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
	var u *Upstream
	BeforeEach(func() {
		asked, result = 0, errors.New("no route")
		var err error
		u, err = New("http://127.0.0.1/", config, gateway.Options{})
		Expect(err).NotTo(HaveOccurred())
		u.pause = time.Minute
		u.next = roundTripper(func(r *http.Request) (*http.Response, error) {
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
		answer, err := u.send(r)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}

	It("gets requests after a pause, and no pause after a success", func(ctx SpecContext) {
		for range failuresInARow {
			Expect(ask(ctx)).NotTo(Succeed())
		}
		u.pause = 0
		Expect(ask(ctx)).NotTo(MatchError(errDown))
		u.pause = time.Minute
		Expect(ask(ctx)).To(MatchError(errDown))
		u.pause, result = 0, nil
		Expect(ask(ctx)).To(Succeed())
		u.pause, result = time.Minute, errors.New("no route")
		Expect(ask(ctx)).NotTo(MatchError(errDown))
	})

	DescribeTable("counts a status as a failure:", func(ctx SpecContext, status int, counts bool) {
		u.next = roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Body: http.NoBody}, nil
		})
		for range failuresInARow {
			Expect(ask(ctx)).To(Succeed())
		}
		Expect(ask(ctx) != nil).To(Equal(counts))
	}, Entry(nil, 502, true), Entry(nil, 503, true), Entry(nil, 504, true), Entry(nil, 500, false),
		Entry(nil, 401, false))

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
		u.config.Patience = time.Millisecond
		u.next = roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, fmt.Errorf("cut: %w", r.Context().Err())
		})
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/", http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		_, err = u.send(r)
		Expect(err).To(And(MatchError(errTimeout), HaveField("Status", http.StatusGatewayTimeout)))
		short, end := context.WithTimeout(ctx, 50*time.Millisecond)
		defer end()
		Expect(ask(short)).To(MatchError(context.DeadlineExceeded))
	})
})

var _ = Describe("The cookies of a session", Label("U18"), func() {
	const key = "ada\x00session"
	var kept *cookies
	BeforeEach(func() {
		target, err := url.Parse("https://mcp.example/api/mcp")
		Expect(err).NotTo(HaveOccurred())
		kept = newCookies(target, "")
	})
	sent := func() []*http.Cookie {
		request := httptest.NewRequest(http.MethodPost, "https://mcp.example/api/mcp", nil)
		kept.addTo(request, key)
		return request.Cookies()
	}

	It("are kept for the path of the upstream only, so that others do not pile up", func() {
		for i := range 100 {
			kept.keep(key, []*http.Cookie{
				{Name: fmt.Sprint("c", i), Value: strings.Repeat("x", 1000), Path: "/other"},
				{Name: fmt.Sprint("d", i), Value: "x", Domain: "other.example"},
				{Name: "route", Value: fmt.Sprint(i), Path: "/api"},
			})
		}
		jar, _ := kept.byKey.Get(key)
		other, err := url.Parse("https://mcp.example/other")
		Expect(err).NotTo(HaveOccurred())
		Expect(jar.Cookies(other)).To(BeEmpty())
		Expect(sent()).To(HaveExactElements(And(HaveField("Name", "route"), HaveField("Value", "99"))))
	})

	DescribeTable("are forgotten when there are too many:", func(count, length, remain int) {
		for i := range count {
			kept.keep(key, []*http.Cookie{{Name: fmt.Sprintf("c%02d", i), Value: strings.Repeat("x", length)}})
		}
		Expect(sent()).To(HaveLen(remain))
	}, Entry("not with 50", 50, 10, 50), Entry("with 51", 51, 10, 0), Entry("not with 4 KiB", 2, 2045, 2),
		Entry("with more than 4 KiB", 2, 2046, 0))
})

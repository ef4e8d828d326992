package http

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/labstack/echo/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

var _ = It("A response in which an endpoint panics is aborted, with an error in the log", Label("D30"), func() {
	var log strings.Builder
	e := &Endpoints{logger: slog.New(slog.NewTextHandler(&log, nil))}
	serve := map[string]endpoint{http.MethodGet: func(c echo.Context) error {
		_ = c.String(http.StatusOK, "a part")
		panic("s3cret")
	}}
	fail := func(c echo.Context, _ error) error { return c.String(http.StatusInternalServerError, "an error") }
	answer := httptest.NewRecorder()
	c := echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/", http.NoBody), answer)
	Expect(func() { _ = e.dispatch(serve, "GET", fail)(c) }).To(PanicWith(http.ErrAbortHandler))
	Expect(answer.Body.String()).To(Equal("a part"))
	Expect(log.String()).To(And(ContainSubstring("level=ERROR"), ContainSubstring("a response broke off"),
		Not(ContainSubstring("s3cret"))))
})

// impatient waits for a body for a moment only.
type impatient struct{ http.ResponseWriter }

// SetReadDeadline is what http.ResponseController calls.
func (i impatient) SetReadDeadline(until time.Time) error {
	if !until.IsZero() {
		until = time.Now()
	}
	return http.NewResponseController(i.ResponseWriter).SetReadDeadline(until)
}

func TestHTTP(t *testing.T) { suite.Run(t, "Authorization server over HTTP") }

var _ = Describe("Reading a form", Label("B1", "D3"), func() {
	DescribeTable("answers a client that stalls and closes its connection:", func(ctx SpecContext, media string) {
		e := echo.New()
		read := func(c echo.Context) error {
			_, err := readForm(c, http.StatusBadRequest)
			return err
		}
		refuse := func(c echo.Context, err error) error { return c.String(http.StatusBadRequest, err.Error()) }
		e.POST("/", new(Endpoints).dispatch(map[string]endpoint{http.MethodPost: read}, http.MethodPost, refuse))
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			e.ServeHTTP(impatient{w}, r)
		}))
		DeferCleanup(site.Close)
		client, err := new(net.Dialer).DialContext(ctx, "tcp", site.Listener.Addr().String())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(client.Close)
		Expect(client.SetReadDeadline(time.Now().Add(5 * time.Second))).To(Succeed())
		_, err = fmt.Fprintf(client,
			"POST / HTTP/1.1\r\nHost: cms.example\r\nContent-Type: %s\r\nContent-Length: 100\r\n\r\na=", media)
		Expect(err).NotTo(HaveOccurred())
		answers := bufio.NewReader(client)
		answer, err := http.ReadResponse(answers, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.StatusCode).To(Equal(http.StatusBadRequest))
		Expect(io.ReadAll(answer.Body)).NotTo(BeEmpty())
		_, err = answers.ReadByte()
		Expect(err).To(MatchError(io.EOF), "the server does not wait for the rest of the body")
	},
		Entry("in the middle of a form", SpecTimeout(10*time.Second), echo.MIMEApplicationForm),
		Entry("behind what makes it no form", SpecTimeout(10*time.Second), echo.MIMETextPlain),
	)

	It("goes by what there is, whatever a request says of its length", func() {
		read := func(length int, claimed int64) (oauth.Parameters, error) {
			r := httptest.NewRequest(http.MethodPost, "/",
				iotest.HalfReader(strings.NewReader("a="+strings.Repeat("x", length-2))))
			r.Header.Set(echo.HeaderContentType, echo.MIMEApplicationForm)
			r.ContentLength = claimed
			return readForm(echo.New().NewContext(r, httptest.NewRecorder()), http.StatusBadRequest)
		}
		for _, claimed := range []int64{-1, 3, 700, 1 << 40} {
			Expect(read(700, claimed)).To(HaveKeyWithValue("a", HaveExactElements(HaveLen(698))))
		}
		Expect(read(maxForm, maxForm)).To(HaveKey("a"))
		for _, claimed := range []int64{3, maxForm + 1} {
			var refused *statusError
			_, err := read(maxForm+1, claimed)
			Expect(errors.As(err, &refused)).To(BeTrue())
			Expect(refused.status).To(Equal(http.StatusRequestEntityTooLarge))
		}
	})
})

var _ = Describe("An endpoint that fails", Label("D30"), func() {
	serve := func(handle endpoint) (failed bool, log string) {
		lines := new(strings.Builder)
		e := &Endpoints{logger: slog.New(slog.NewTextHandler(lines, nil))}
		c := echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/", http.NoBody), httptest.NewRecorder())
		fail := func(echo.Context, error) error {
			failed = true
			return nil
		}
		Expect(e.dispatch(map[string]endpoint{http.MethodGet: handle}, "GET", fail)(c)).To(Succeed())
		return failed, lines.String()
	}

	It("answers through its channel before it has answered", func() {
		failed, _ := serve(func(echo.Context) error { return errors.New("a bug") })
		Expect(failed).To(BeTrue())
	})

	It("answers nothing more once the client has hung up during the answer, which is not our fault", func() {
		failed, log := serve(func(c echo.Context) error {
			c.Response().WriteHeader(http.StatusOK)
			return errors.New("broken pipe")
		})
		Expect(failed).To(BeFalse())
		Expect(log).To(And(ContainSubstring("level=INFO"), ContainSubstring("broken pipe")))
	})
})

// locales returns the files with the translations of the pages.
func locales() []string {
	GinkgoHelper()
	files, err := filepath.Glob("pages/locales/*.json")
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty())
	return files
}

// textsIn returns the English texts that a file translates.
func textsIn(file string) []string {
	GinkgoHelper()
	content, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	var translated map[string]string
	Expect(json.Unmarshal(content, &translated)).To(Succeed(), file)
	return slices.Sorted(maps.Keys(translated))
}

var _ = Describe("Translating texts", func() {
	It("covers the same texts in every language", func() {
		first := textsIn(locales()[0])
		for _, file := range locales() {
			Expect(textsIn(file)).To(Equal(first), file)
		}
	})
})

var _ = Describe("Explaining a refusal", func() {
	It("has every text in every language", func() {
		drawn, err := pages.New("cms.example", pages.Appearance{}, nil)
		Expect(err).NotTo(HaveOccurred())
		reasons := []explanation{explain(errors.New("a bug"), outcome{}),
			explain(oauth.Refuse(oauth.InvalidRequest, "A5", "x"), outcome{})}
		reasons = append(reasons, explainConnections(outcome{status: 400}), explainConnections(outcome{status: 503}))
		for _, why := range explanations {
			reasons = append(reasons, why)
		}
		for kind := range statuses {
			if sentence, again := retryMessage(oauth.Refuse(kind, "B8", "x"), false); again {
				reasons = append(reasons, explanation{title: sentence})
			}
		}
		for _, file := range locales() {
			tongue := strings.TrimSuffix(filepath.Base(file), ".json")
			for _, why := range reasons {
				w := httptest.NewRecorder()
				Expect(drawn.For(tongue).
					WriteProblem(w, 400, pages.Problem{Title: why.title, Text: why.text, Advice: why.advice})).
					To(Succeed())
				for _, english := range []string{why.title, why.text, why.advice} {
					Expect(english == "" || !strings.Contains(w.Body.String(), ">"+english+"<")).
						To(BeTrue(), tongue+": "+english)
				}
			}
		}
	})
})

var _ = Describe("Following requests", func() {
	DescribeTable("knows an address no closer than its network", func(peer, network string) {
		request := httptest.NewRequest("GET", "/", nil)
		request.RemoteAddr = peer
		Expect(networkOf(echo.New().NewContext(request, nil).RealIP())).To(Equal(network))
	},
		Entry("of IPv4", "203.0.113.7:1", "203.0.113.0/24"),
		Entry("of IPv6", "[2001:db8:1:2:3::7]:1", "2001:db8:1::/48"),
		Entry("of IPv4 in IPv6", "[::ffff:203.0.113.7]:1", "203.0.113.0/24"),
		Entry("without an address", "", ""),
	)
})

package http

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing/iotest"
	"time"

	"github.com/labstack/echo/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// impatient waits for a body for a moment only.
type impatient struct{ http.ResponseWriter }

// SetReadDeadline is what http.ResponseController calls.
func (i impatient) SetReadDeadline(until time.Time) error {
	if !until.IsZero() {
		until = time.Now()
	}
	return http.NewResponseController(i.ResponseWriter).SetReadDeadline(until)
}

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

	DescribeTable("goes by what there is, whatever a request says of its length:",
		func(length int, claimed int64, status int) {
			r := httptest.NewRequest(http.MethodPost, "/",
				iotest.HalfReader(strings.NewReader("a="+strings.Repeat("x", length-2))))
			r.Header.Set(echo.HeaderContentType, echo.MIMEApplicationForm)
			r.ContentLength = claimed
			form, err := readForm(echo.New().NewContext(r, httptest.NewRecorder()), http.StatusBadRequest)
			if status != http.StatusOK {
				var refused *statusError
				Expect(errors.As(err, &refused)).To(BeTrue())
				Expect(refused.status).To(Equal(status))
				return
			}
			Expect(err).NotTo(HaveOccurred())
			Expect(form["a"]).To(HaveExactElements(HaveLen(length - 2)))
		},
		Entry("of unknown length", 700, int64(-1), http.StatusOK),
		Entry("as long as it says", 700, int64(700), http.StatusOK),
		Entry("longer than it says", 700, int64(3), http.StatusOK),
		Entry("shorter than it says", 700, int64(1<<40), http.StatusOK),
		Entry("as long as it may be", maxForm, int64(maxForm), http.StatusOK),
		Entry("longer than it may be", maxForm+1, int64(maxForm+1), http.StatusRequestEntityTooLarge),
		Entry("longer than it may be and than it says", maxForm+1, int64(3), http.StatusRequestEntityTooLarge),
	)
})

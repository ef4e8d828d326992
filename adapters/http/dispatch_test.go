package http

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/labstack/echo/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

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

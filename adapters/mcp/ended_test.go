package mcp

import (
	"net/http"
	"net/http/httptest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Closing the streams of ended grants", Label("G16", "E9"), func() {
	It("is idle before something is opened and after it has ended", func(ctx SpecContext) {
		s := openSite()
		Expect(s.mcp.Idle()).To(BeTrue())
		s.session(ctx, alice)
		Expect(s.mcp.Idle()).To(BeFalse())
		for range 3 { // it may be repeated
			s.mcp.CloseEnded(oauth.Ended{Grants: []string{"A"}})
		}
		Eventually(s.mcp.Idle).WithContext(ctx).WithTimeout(10 * time.Second).Should(BeTrue())
	})
})

var _ = Describe("Ending a response before it has begun", Label("G16", "G7"), func() {
	It("answers a waiting client with the cause, and writes nothing to one that has gone", func(ctx SpecContext) {
		s := openSite()
		open := func() (*response.Writer, *httptest.ResponseRecorder) {
			to := httptest.NewRecorder()
			out, _ := s.mcp.responses.NewWriter(to, httptest.NewRequest(http.MethodGet, "/mcp", http.NoBody), ctx)
			DeferCleanup(out.Finish)
			return out, to
		}
		for _, cut := range []struct {
			cause  error
			status int
		}{{response.ErrEnded, http.StatusUnauthorized}, {response.ErrDraining, http.StatusServiceUnavailable},
			{nil, http.StatusOK}} {
			out, to := open()
			out.End(cut.cause)
			s.mcp.answerEnded(out)
			Expect(to.Code).To(Equal(cut.status))
		}
		out, to := open()
		out.WriteHeader(http.StatusAccepted)
		out.End(response.ErrEnded)
		s.mcp.answerEnded(out)
		Expect(to.Code).To(Equal(http.StatusAccepted))
		Expect(to.Header()).NotTo(HaveKey("Www-Authenticate"))
	})
})

package guard

import (
	"net/http"
	"net/http/httptest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/stream"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Ending a response before it has begun", Label("G16", "G7"), func() {
	It("answers a waiting client with the cause, and writes nothing to one that has gone", func(ctx SpecContext) {
		o := Options{Issuer: "https://cms.example", Resource: oauth.NewResource("https://cms.example/mcp")}
		o = o.WithDefaults()
		g := New(o, stream.NewRegistry(o.Responses()))
		open := func() (*stream.Writer, *httptest.ResponseRecorder) {
			to := httptest.NewRecorder()
			out, _ := g.responses.NewWriter(to, httptest.NewRequest(http.MethodGet, "/mcp", http.NoBody), ctx)
			DeferCleanup(out.Finish)
			return out, to
		}
		for _, cut := range []struct {
			cause  error
			status int
		}{{stream.ErrEnded, http.StatusUnauthorized}, {stream.ErrDraining, http.StatusServiceUnavailable},
			{nil, http.StatusOK}} {
			out, to := open()
			out.End(cut.cause)
			g.answerEnded(out)
			Expect(to.Code).To(Equal(cut.status))
		}
		out, to := open()
		out.WriteHeader(http.StatusAccepted)
		out.End(stream.ErrEnded)
		g.answerEnded(out)
		Expect(to.Code).To(Equal(http.StatusAccepted))
		Expect(to.Header()).NotTo(HaveKey("Www-Authenticate"))
	})
})

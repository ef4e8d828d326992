package guard

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/stream"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

var _ = Describe("Refusing other hosts", Label("G1"), func() {
	DescribeTable("allows the Host header of", func(resource, host string, known bool) {
		g := newGate(Options{Issuer: resource, Resource: oauth.NewResource(resource + "/mcp"),
			AllowedHosts: []string{"tunnel.example"}})
		Expect(g.allowsHost(host)).To(Equal(known))
	},
		Entry("a public server with any name, because proxies change it", "https://cms.example", "10.0.0.7:8080", true),
		Entry("a server on loopback with its address", "http://127.0.0.1:8080", "127.0.0.1:8080", true),
		Entry("a server on loopback with its name", "http://127.0.0.1:8080", "LOCALHOST:8080", true),
		Entry("a server on loopback with its other address", "http://localhost:8080", "[::1]:8080", true),
		Entry("a server on loopback with an allowed name", "http://127.0.0.1:8080", "Tunnel.example", true),
		Entry("no server with a name that was rebound to loopback", "http://127.0.0.1:8080", "evil.example", false),
		Entry("no server with a name that only begins like localhost", "http://127.0.0.1:8080",
			"localhost.evil.example:8080", false),
	)
})

func TestGuard(t *testing.T) { suite.Run(t, "The guard of an MCP server") }

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

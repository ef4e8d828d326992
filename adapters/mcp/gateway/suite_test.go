package gateway

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

func TestGateway(t *testing.T) { suite.Run(t, "The gateway") }

const (
	alice     = "ppa_alice" // the only token
	issuer    = "https://cms.example"
	canonical = "https://cms.example/mcp"
)

type tokens struct{}

func (tokens) Authenticate(_ context.Context, bearer string, _ oauth.Resource) (oauth.Caller, error) {
	if bearer != alice {
		return oauth.Caller{}, oauth.Refuse(oauth.InvalidToken, "G7", "unknown", errors.New("it is another one"))
	}
	return oauth.Caller{Grant: "A", Subject: "alice"}, nil
}

// site is a gateway on a loopback port.
type site struct {
	*httptest.Server
	gateway *Gateway
}

// open returns a gateway to an upstream, with the options and the server changed.
func open(to Upstream, change func(o *Options, server *http.Server)) *site {
	e := echo.New()
	s := &site{Server: httptest.NewUnstartedServer(e)}
	o := Options{}
	o.Issuer, o.Resource, o.Authorization = issuer, oauth.NewResource(canonical), tokens{}
	o.AllowedHosts = []string{s.Listener.Addr().String()}
	change(&o, s.Config)
	s.gateway = New(to, o)
	s.gateway.Mount(e)
	s.Start()
	DeferCleanup(func() {
		s.gateway.Drain()
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// send returns a response of which the caller reads the body.
func (s *site) send(ctx context.Context, method, body string) *http.Response {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(ctx, method, s.URL+"/mcp", strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Authorization", "Bearer "+alice)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	response, err := s.Client().Do(r)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(response.Body.Close)
	return response
}

const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}`

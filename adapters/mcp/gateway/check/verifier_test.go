package check

import (
	"bytes"
	"crypto/x509"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

func TestCheck(t *testing.T) { suite.Run(t, "Checking an MCP server") }

const token = "site_token|with:signs"

// mcpServer is an MCP server over TLS that gives every request the same answer.
type mcpServer struct {
	*httptest.Server
	answer http.HandlerFunc
	log    bytes.Buffer
	asked  []*http.Request
	bodies []string
}

func newMCPServer() *mcpServer {
	s := new(mcpServer)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.asked, s.bodies = append(s.asked, r), append(s.bodies, string(body))
		s.answer(w, r)
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	DeferCleanup(s.Close)
	return s
}

func (s *mcpServer) reach() gateway.Reach {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return gateway.Reach{RootCAs: roots}
}

func answering(status int, mediaType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// beUnavailable matches an outage of the verifier with a safe text.
func beUnavailable(reason string) types.GomegaMatcher {
	return And(MatchError(ContainSubstring(reason)), Not(MatchError(oauth.ErrUnknownBearer)),
		Not(MatchError(ContainSubstring(token))))
}

const emptyResult = `{"jsonrpc":"2.0","id":1,"result":{}}`

var _ = Describe("Verifying at an MCP server", Label("U14"), func() {
	var mcp *mcpServer
	var verifier *Verifier
	var clock time.Time
	principal := oauth.Principal{Scopes: []string{"all"}}
	BeforeEach(func() {
		mcp, clock = newMCPServer(), time.Unix(1, 0)
		verifier = NewVerifier(mcp.URL+"/mcp", gateway.Config{
			Reach:  mcp.reach(),
			Now:    func() time.Time { return clock },
			Logger: slog.New(slog.NewTextHandler(&mcp.log, nil)),
		}, []string{"all"})
	})
	// accepting is a server that accepts the token, and answers 400 to methods that it does not
	// support.
	accepting := func(supports func(body string, r *http.Request) bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Header.Get("Authorization") != "Bearer "+token:
				w.WriteHeader(http.StatusUnauthorized)
			case r.Method == http.MethodDelete:
			case !supports(mcp.bodies[len(mcp.bodies)-1], r):
				w.WriteHeader(http.StatusBadRequest)
			case r.Method == http.MethodGet:
				w.Header().Set("Mcp-Session-Id", "one")
				w.Header().Set("Content-Type", "text/event-stream")
			default:
				w.Header().Set("Mcp-Session-Id", "one")
				_, _ = io.WriteString(w, emptyResult)
			}
		}
	}
	has := func(method string) func(string, *http.Request) bool {
		return func(body string, _ *http.Request) bool { return strings.Contains(body, `"method":"`+method+`"`) }
	}

	It("refuses a server that accepts a random token, and probes it again from time to time", func(ctx SpecContext) {
		mcp.answer = answering(http.StatusOK, "application/json", emptyResult)
		_, err := verifier.VerifyBearer(ctx, token)
		Expect(err).To(beUnavailable("it accepts any token"))
		mcp.answer = accepting(has("initialize"))
		Expect(verifier.VerifyBearer(ctx, token)).To(Equal(principal))
		mcp.answer = answering(http.StatusOK, "application/json", emptyResult)
		Expect(verifier.VerifyBearer(ctx, token)).To(Equal(principal), "the last probe is recent")
		clock = clock.Add(probeInterval)
		_, err = verifier.VerifyBearer(ctx, token)
		Expect(err).To(beUnavailable("it accepts any token"))
	})

	Context("with a server that answers 403 to a wrong token", func() {
		// forbidding answers with the status without to requests that have no token.
		forbidding := func(without int, header http.Header) {
			mcp.answer = func(w http.ResponseWriter, r *http.Request) {
				switch r.Header.Get("Authorization") {
				case "Bearer " + token:
					_, _ = io.WriteString(w, emptyResult)
				case "":
					w.WriteHeader(without)
				default:
					maps.Copy(w.Header(), header)
					w.WriteHeader(http.StatusForbidden)
				}
			}
		}

		It("leaves a token undecided if the server names a time to try again", Label("B9"), func(ctx SpecContext) {
			forbidding(http.StatusUnauthorized, http.Header{"Retry-After": {"60"}})
			_, err := verifier.VerifyBearer(ctx, "another")
			Expect(err).To(beUnavailable("it answered 403"))
		})
	})

	It("refuses a token that no header can carry, without a request", func(ctx SpecContext) {
		_, err := verifier.VerifyBearer(ctx, "a b")
		Expect(err).To(MatchError(oauth.ErrUnknownBearer))
		Expect(mcp.asked).To(BeEmpty())
	})
})

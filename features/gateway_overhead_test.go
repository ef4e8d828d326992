package features_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service"
)

const shoutCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` +
	`"name":"shout","arguments":{"text":"hello"},"_meta":{` +
	`"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"spec","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{}}}}`

// pace is the number of calls per second, and per second of CPU time.
type pace struct{ wall, cpu float64 }

// spent returns the CPU time of this process.
func spent() time.Duration {
	var used syscall.Rusage
	Expect(syscall.Getrusage(syscall.RUSAGE_SELF, &used)).To(Succeed())
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// rush lets clients call the tool for a time span.
func rush(ctx context.Context, target, token string, clients int, span time.Duration) pace {
	GinkgoHelper()
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	var calls atomic.Int64
	var failure atomic.Value
	var all sync.WaitGroup
	began, before := time.Now(), spent()
	for range clients {
		all.Go(func() {
			for time.Since(began) < span {
				r, _ := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(shoutCall))
				for name, value := range map[string]string{
					"Content-Type":         "application/json",
					"Accept":               "application/json, text/event-stream",
					"Mcp-Protocol-Version": stateless,
					"Mcp-Method":           "tools/call",
					"Mcp-Name":             "shout",
					"Authorization":        "Bearer " + token,
				} {
					r.Header.Set(name, value)
				}
				answer, err := transport.RoundTrip(r)
				if err != nil {
					failure.Store(err.Error())
					return
				}
				text, err := io.ReadAll(answer.Body)
				if _ = answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK ||
					!strings.Contains(string(text), "HELLO") {
					failure.Store(fmt.Sprint(answer.Status, err, string(text)))
				}
				calls.Add(1)
			}
		})
	}
	all.Wait()
	Expect(failure.Load()).To(BeNil())
	return pace{float64(calls.Load()) / time.Since(began).Seconds(),
		float64(calls.Load()) / (spent() - before).Seconds()}
}

// bareUpstream responds like an MCP server, with minimal work.
func bareUpstream() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("Authorization") != "Bearer "+apiKey {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"HELLO"}]}}`)
	})
}

// sdkUpstream is the Go SDK's server without sessions.
func sdkUpstream() http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "upstream", Version: "1"}, nil)
	(&UpstreamServer{}).addTools(server)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		return server
	}, &mcp.StreamableHTTPOptions{Stateless: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+apiKey {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// These specs only print figures: OVERHEAD=yes CGO_ENABLED=0 go test ./features -v
// -ginkgo.label-filter=overhead
var _ = Describe("Measuring the overhead of a gateway", Label("overhead"), func() {
	if os.Getenv("OVERHEAD") == "" {
		return
	}
	const rounds, clients, span = 21, 64, 700 * time.Millisecond
	for kind, handler := range map[string]http.Handler{"the Go SDK's server": sdkUpstream(),
		"a server that does nothing": bareUpstream()} {
		for _, credential := range []string{bootstrap.CredentialHostToken, bootstrap.CredentialStatic} {
			It("compares it with the standard library's reverse proxy in front of "+kind+", credential "+credential,
				func(ctx SpecContext) {
					upstream := httptest.NewServer(handler)
					DeferCleanup(upstream.Close)
					target, err := url.Parse(upstream.URL)
					Expect(err).NotTo(HaveOccurred())
					proxy := &httputil.ReverseProxy{
						Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(target) },
						Transport: &http.Transport{MaxIdleConnsPerHost: 2 * clients, DisableCompression: true},
					}
					plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						// Without it, early responses are truncated.
						_ = http.NewResponseController(w).EnableFullDuplex()
						proxy.ServeHTTP(w, r)
					}))
					DeferCleanup(plain.Close)
					world := NewGateway(upstream.URL+"/mcp", func(c *service.Config) {
						c.Logger = slog.New(slog.NewJSONHandler(io.Discard, nil))
						if credential == bootstrap.CredentialStatic {
							static(ada(apiKey))(c)
						}
					})
					access := world.NewClient().Connect(ctx).Access
					var wall, cpu []float64
					for range rounds {
						direct := rush(ctx, plain.URL+"/mcp", apiKey, clients, span)
						ours := rush(ctx, world.MCP(), access, clients, span)
						wall, cpu = append(wall, ours.wall/direct.wall), append(cpu, ours.cpu/direct.cpu)
					}
					slices.Sort(wall)
					slices.Sort(cpu)
					fmt.Printf("\ngateway / reverse proxy before %s, credential %s, calls in a second: median %.2f "+
						"(%.2f to %.2f); in a second of the processor: %.2f (%.2f to %.2f)\n",
						kind, credential, wall[rounds/2], wall[0], wall[rounds-1], cpu[rounds/2], cpu[0], cpu[rounds-1])
				})
		}
	}
})

package features_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

const (
	serverPath   = "/.well-known/oauth-authorization-server"
	resourcePath = "/.well-known/oauth-protected-resource/mcp"
)

// login returns the flags for a check with a whole login.
func login(f *Front) []string { return []string{"--token", f.world.Token} }

// Breakages that take more than a line.
var (
	httpIssuer = func(f *Front) {
		overTLS(f)
		f.issuer = "http://" + f.server.Listener.Addr().String()
	}
	expired = func(f *Front) {
		overTLS(f)
		f.server.TLS = certified("127.0.0.1", time.Now().Add(-time.Hour))
	}
	buffered = func(f *Front) {
		asking("--timeout", "5s")(f) // all earlier checks must finish within it
		f.instead(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || r.URL.Path != "/mcp" {
				next.ServeHTTP(w, r)
				return
			}
			collected := httptest.NewRecorder() // forwards the response at its end, which never comes
			next.ServeHTTP(collected, r)
			w.WriteHeader(collected.Code)
			_, _ = w.Write(collected.Body.Bytes())
		})
	}
	withoutOlder = func(f *Front) { // turns off the HTTP+SSE transport
		f.instead(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && r.URL.Path == "/mcp" && r.Header.Get("Authorization") != "" &&
				r.Header.Get("Mcp-Session-Id") == "" {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
)

var _ = Describe("Checking a broken deployment", Label("doctor"), func() {
	examine := func(ctx context.Context, front *Front, whole bool) Diagnosis {
		args := append([]string{front.URL() + "/mcp", "--timeout", patience.String()}, front.asks...)
		switch {
		case whole:
			args = append(args, login(front)...)
		case front.tls && !slices.Contains(args, "--no-ca"):
			args = append(args, "--ca", Trust(front.server))
		}
		return Diagnose(ctx, slices.DeleteFunc(args, func(arg string) bool { return arg == "--no-ca" })...)
	}
	named := func(d Diagnosis, name, seen, fix string) {
		GinkgoHelper()
		Expect(d.With("failed")).To(Equal([]string{name}), d.Out)
		found := d.Of(name)
		Expect(found.Seen).To(ContainSubstring(seen))
		Expect(found.Fix).To(ContainSubstring(fix))
		Expect(found.Question).NotTo(BeEmpty())
		Expect(d.Code).To(Equal(1))
	}

	DescribeTable("reports the one failure and its remedy",
		func(ctx SpecContext, spoil func(*Front), name, seen, fix string) {
			named(examine(ctx, NewFront(spoil), false), name, seen, fix)
		},
		Entry("when the issuer is http behind a proxy with TLS", httpIssuer, "resource",
			`but people enter "https`, "serve --issuer"),
		Entry("when URLs have an internal host name", func(f *Front) {
			f.issuer = "http://localhost:1"
		}, "resource", "http://localhost:1", "public https URL"),
		Entry("when CORS is missing on the documents", header(serverPath, "Access-Control-Allow-Origin"),
			"cors", serverPath, "Access-Control-Allow-Origin: *"),
		Entry("when the Inspector may not read the documents", both(
			preflightAllows(resourcePath, "MCP-Protocol-Version"), preflightAllows(serverPath, "MCP-Protocol-Version")),
			"cors", "Content-Type", "OPTIONS"),
		Entry("when web pages cannot read the challenge",
			both(ownOrigin, header("/mcp", "Access-Control-Expose-Headers")), "cors", "WWW-Authenticate",
			"Expose-Headers"),
		Entry("when the endpoint neither allows nor refuses origins", originsIgnored, "cors",
			"has Access-Control-Allow-Origin", "allowed-origins"),
		Entry("when resource has a trailing slash", rewriting(resourcePath, func(text string) string {
			return strings.ReplaceAll(text, `/mcp"`, `/mcp/"`)
		}), "resource", "/mcp/", "trailing slash"),
		Entry("when the metadata is behind a redirect", status("GET", resourcePath, 308, "Location", resourcePath+"/"),
			"resource", "308", "exempt /.well-known/*"),
		Entry("when the metadata is missing", status("GET", resourcePath, 404), "resource", "404", "proxy"),
		Entry("when the response is a page instead of the document", rewriting(resourcePath, func(string) string {
			return "<html>"
		}), "resource", "not a JSON object", "own pages"),
		Entry("when the content type of the resource metadata is wrong",
			header(resourcePath, "Content-Type", "text/plain"), "resource", "text/plain",
			"Content-Type: application/json"),
		Entry("when the clock is five minutes ahead", dated(5*time.Minute), "connect", "differ by ", "time service"),
		Entry("when the token endpoint is not found", status("POST", "/oauth/token", 404), "token", "404", "proxy"),
		Entry("when token responses are cacheable", header("/oauth/token", "Cache-Control", "public, max-age=60"),
			"token", "public", "no-store"),
		Entry("when the certificate has expired", expired, "connect", "expired", "Renew"),
		Entry("when the certificate is for another name", func(f *Front) {
			overTLS(f)
			f.server.TLS = certified("192.0.2.1", time.Now().Add(time.Hour*24*90))
		}, "connect", "192.0.2.1", "name in the URL"),
		Entry("when the CA is unknown", both(overTLS, asking("--no-ca")), "connect", "unknown authority", "--ca"),
		Entry("when WWW-Authenticate comes twice", changing("/mcp", func(r *http.Response) {
			r.Header.Add("WWW-Authenticate", r.Header.Get("WWW-Authenticate"))
		}), "challenge", "2 WWW-Authenticate headers", "Send the header once"),
		Entry("when WWW-Authenticate is lost", header("/mcp", "WWW-Authenticate"), "challenge", "without",
			"must not remove"),
		Entry("when WWW-Authenticate is malformed", header("/mcp", "WWW-Authenticate", `Bearer resource_metadata="`),
			"challenge", "resource_metadata", "unchanged"),
		Entry("when a second scheme is offered",
			rewritten("/mcp", "WWW-Authenticate", `, scope="mcp"`, `, Basic realm="x"`), "challenge",
			"not one Bearer challenge", "unchanged"),
		Entry("when the resource names no authorization server", member(resourcePath, "authorization_servers", nil),
			"resource", "authorization_servers", "public https URL"),
		Entry("when an issuer has a trailing slash", slashedIssuer, "resource", "slash", "public https URL"),
		Entry("when the issuer is another one", member(serverPath, "issuer", "https://other.example"),
			"server", "https://other.example", "byte for byte"),
		Entry("when the token endpoint is elsewhere", member(serverPath, "token_endpoint", "https://other.example/t"),
			"server", "https://other.example/t", "right server"),
		Entry("when PKCE is not supported", member(serverPath, "code_challenge_methods_supported", []string{"plain"}),
			"server", "plain", "right server"),
		Entry("when the connection breaks off", answering("POST", "/mcp", hangUp), "connect", "EOF", "proxy"),
		Entry("when the endpoint needs no token", unchallenged(200), "challenge", "200", "bearer check"),
		Entry("when the endpoint sends clients to a login page", unchallenged(302), "challenge", "302", "401"),
		Entry("when the endpoint is not found", unchallenged(404), "challenge", "404", "/mcp"),
		Entry("when GET of the endpoint returns a page", status("GET", "/mcp", 200, "Content-Type", "text/html"),
			"challenge", "text/html", "past pages"),
	)

	It("says until when the certificate is valid", func(ctx SpecContext) {
		d := examine(ctx, NewFront(func(f *Front) {
			overTLS(f)
			f.server.TLS = certified("127.0.0.1", time.Date(2099, time.May, 4, 0, 0, 0, 0, time.UTC))
		}), false)
		Expect(d.Of("connect").Seen).To(ContainSubstring("valid until 4 May 2099"))
	})

	It("checks the stream of a session when HTTP+SSE is not supported", func(ctx SpecContext) {
		found := examine(ctx, NewFront(withoutOlder), true).Of("stream")
		Expect(found.Status).To(Equal("ok"), found.Seen)
		Expect(found.Seen).To(ContainSubstring("for a session"))
	})

	DescribeTable("reports the one failure of a login and its remedy",
		func(ctx SpecContext, spoil func(*Front), name, seen, fix string) {
			named(examine(ctx, NewFront(spoil), true), name, seen, fix)
		},
		Entry("when events are buffered", Label("long"), buffered, "stream", "no event arrives", "proxy_buffering off"),
		Entry("when the authorization endpoint is not found", status("GET", "/oauth/authorize", 404), "login", "404",
			"authorization endpoint"),
		Entry("when the server publishes no document for doctor", func(f *Front) {
			f.adjust = func(c *service.Config) { c.DoctorClient = false }
		}, "login", "invalid_client", "doctor-client: true"),
		Entry("when the code is refused", granted(func(r *http.Response) {
			r.StatusCode = http.StatusBadRequest
		}), "login", "400", "log of the authorization server"),
		Entry("when the proxy removes the token", withoutToken, "login", "Unauthorized", "Authorization"),
		Entry("when the refresh fails", refusedRefresh, "refresh", "invalid_grant", "log of the authorization server"),
		Entry("when the state is missing", back(func(query url.Values) {
			query.Del("state")
		}), "login", "another state", "unchanged"),
		Entry("when iss is wrong", back(func(query url.Values) {
			query.Set("iss", "https://other.example")
		}), "login", "https://other.example", "unchanged"),
		Entry("when the revocation endpoint is missing", status("POST", "/oauth/revoke", 404), "revoke", "404",
			"revocation endpoint"),
		Entry("when revoked tokens still work", status("POST", "/oauth/revoke", 200), "revoke", "200", "each token"),
	)
})

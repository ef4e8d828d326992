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
	rootPath     = "/.well-known/oauth-protected-resource"
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
	named := func(d Diagnosis, id, seen, mend string) {
		GinkgoHelper()
		Expect(d.With("failure")).To(Equal([]string{id}), d.Out)
		found := d.Of(id)
		Expect(found.Seen).To(ContainSubstring(seen))
		Expect(found.Mend).To(ContainSubstring(mend))
		Expect(found.Why).NotTo(BeEmpty())
		Expect(d.Next).To(ContainSubstring("mend " + id))
		Expect(d.Code).To(Equal(1))
	}

	DescribeTable("reports the one failure and its remedy",
		func(ctx SpecContext, spoil func(*Front), id, seen, mend string) {
			named(examine(ctx, NewFront(spoil), false), id, seen, mend)
		},
		Entry("when the issuer is http behind a proxy with TLS", httpIssuer, "resource.metadata",
			`but people enter "https`, "serve --issuer"),
		Entry("when URLs have an internal host name", func(f *Front) {
			f.issuer = "http://localhost:1"
		}, "resource.metadata", "http://localhost:1", "public https URL"),
		Entry("when CORS is missing on the documents", header(serverPath, "Access-Control-Allow-Origin"),
			"cors.login", serverPath, "Access-Control-Allow-Origin: *"),
		Entry("when CORS is missing on the token endpoint", header("/oauth/token", "Access-Control-Allow-Origin"),
			"cors.login", "/oauth/token", "errors too"),
		Entry("when the Inspector may not read the documents", both(
			preflightAllows(resourcePath, "MCP-Protocol-Version"), preflightAllows(serverPath, "MCP-Protocol-Version")),
			"cors.login", "content-type", "OPTIONS"),
		Entry("when web pages cannot read the challenge",
			both(ownOrigin, header("/mcp", "Access-Control-Expose-Headers")), "cors.endpoint", "WWW-Authenticate",
			"Expose-Headers"),
		Entry("when the endpoint neither allows nor refuses origins", originsIgnored, "cors.endpoint",
			"has Access-Control-Allow-Origin", "allowed-origins"),
		Entry("when resource has a trailing slash", rewriting(resourcePath, func(text string) string {
			return strings.ReplaceAll(text, `/mcp"`, `/mcp/"`)
		}), "resource.metadata", "/mcp/", "trailing slash"),
		Entry("when the metadata is behind a redirect", status("GET", resourcePath, 308, "Location", resourcePath+"/"),
			"resource.metadata", "308", "exempt /.well-known/*"),
		Entry("when the server metadata is behind a redirect", status("GET", serverPath, 301, "Location", "/login"),
			"server.metadata", "301", "exempt /.well-known/*"),
		Entry("when the server metadata is missing", status("GET", serverPath, 404), "server.metadata",
			"404", "proxy"),
		Entry("when the metadata is missing", status("GET", resourcePath, 404), "resource.metadata",
			"404", "proxy"),
		Entry("when the response is a page instead of the document", rewriting(resourcePath, func(string) string {
			return "<html>"
		}), "resource.metadata", "not a JSON object", "own pages"),
		Entry("when the content type of the resource metadata is wrong",
			header(resourcePath, "Content-Type", "text/plain"), "resource.metadata", "text/plain",
			"Content-Type: application/json"),
		Entry("when the content type of the server metadata is wrong",
			header(serverPath, "Content-Type", "application/octet-stream"), "server.metadata", "octet-stream",
			"Content-Type: application/json"),
		Entry("when the clock is five minutes ahead", dated(5*time.Minute), "reach.clock", "ahead of this computer's",
			"time service"),
		Entry("when the clock is five minutes behind", dated(-5*time.Minute), "reach.clock", "behind this computer's",
			"time service"),
		Entry("when the token endpoint is not found", status("POST", "/oauth/token", 404), "token.answer", "404",
			"proxy"),
		Entry("when the token endpoint redirects", status("POST", "/oauth/token", 301, "Location", "/oauth/token/"),
			"token.answer", "301", "without redirect"),
		Entry("when token responses are cacheable", header("/oauth/token", "Cache-Control", "public, max-age=60"),
			"cache.headers", "public", "no-store"),
		Entry("when the certificate has expired", expired, "reach.connect", "expired", "Renew"),
		Entry("when the certificate is for another name", func(f *Front) {
			overTLS(f)
			f.server.TLS = certified("192.0.2.1", time.Now().Add(time.Hour*24*90))
		}, "reach.connect", "192.0.2.1", "name in the URL"),
		Entry("when the CA is unknown", both(overTLS, asking("--no-ca")), "reach.connect",
			"unknown authority", "--ca"),
		Entry("when WWW-Authenticate comes twice", changing("/mcp", func(r *http.Response) {
			r.Header.Add("WWW-Authenticate", r.Header.Get("WWW-Authenticate"))
		}), "challenge.header", "2 WWW-Authenticate headers", "Send the header once"),
		Entry("when WWW-Authenticate is lost", header("/mcp", "WWW-Authenticate"), "challenge.header", "without",
			"must not remove"),
		Entry("when WWW-Authenticate is malformed", header("/mcp", "WWW-Authenticate", `Bearer resource_metadata="`),
			"challenge.header", "resource_metadata", "unchanged"),
		Entry("when the challenge names no metadata",
			header("/mcp", "WWW-Authenticate", `Bearer error="invalid_token"`), "challenge.header",
			"resource_metadata", "unchanged"),
		Entry("when a second scheme is offered",
			rewritten("/mcp", "WWW-Authenticate", `, scope="mcp"`, `, Basic realm="x"`), "challenge.header",
			"not one Bearer challenge", "unchanged"),
		Entry("when the resource names no authorization server", member(resourcePath, "authorization_servers", nil),
			"resource.metadata", "authorization_servers", "public https URL"),
		Entry("when an issuer has a trailing slash", slashedIssuer, "resource.metadata", "slash", "public https URL"),
		Entry("when the issuer is another one", member(serverPath, "issuer", "https://other.example"),
			"server.metadata", "https://other.example", "byte for byte"),
		Entry("when the token endpoint is not named", member(serverPath, "token_endpoint", nil), "server.metadata",
			"token_endpoint", "unchanged"),
		Entry("when the token endpoint is elsewhere", member(serverPath, "token_endpoint", "https://other.example/t"),
			"server.metadata", "https://other.example/t", "right server"),
		Entry("when PKCE is not supported", member(serverPath, "code_challenge_methods_supported", []string{"plain"}),
			"server.metadata", "plain", "right server"),
		Entry("when the authorization endpoint is not found", status("GET", "/oauth/authorize", 404), "authorize.page",
			"404", "proxy"),
		Entry("when the connection breaks off", answering("POST", "/mcp", hangUp), "reach.connect", "EOF", "proxy"),
		Entry("when the endpoint needs no token", unchallenged(200), "challenge.header", "200", "bearer check"),
		Entry("when the endpoint sends clients to a login page", unchallenged(302), "challenge.header", "302", "401"),
		Entry("when the endpoint responds with 403 instead of 401", unchallenged(403), "challenge.header",
			"403", "401"),
		Entry("when the endpoint is not found", unchallenged(404), "challenge.header", "404", "/mcp"),
		Entry("when the server fails", unchallenged(502), "challenge.header", "502", "logs"),
		Entry("when GET of the endpoint returns a page", status("GET", "/mcp", 200, "Content-Type", "text/html"),
			"challenge.stream", "text/html", "past pages"),
	)

	DescribeTable("warns of a problem that does not block clients",
		func(ctx SpecContext, spoil func(*Front), id, seen, mend string) {
			d := examine(ctx, NewFront(spoil), false)
			Expect(d.With("failure")).To(BeEmpty(), d.Out)
			Expect(d.With("warning")).To(Equal([]string{id}), d.Out)
			Expect(d.Of(id).Seen).To(ContainSubstring(seen))
			Expect(d.Of(id).Mend).To(ContainSubstring(mend))
			Expect(d.Result).To(Equal("warning"))
			Expect(d.Code).To(BeZero())
		},
		Entry("when the certificate expires soon", func(f *Front) {
			overTLS(f)
			f.server.TLS = certified("127.0.0.1", time.Now().Add(24*time.Hour))
		}, "reach.connect", "only", "Renew"),
		Entry("when the clock is a minute off", dated(time.Minute), "reach.clock", "ahead of this computer's",
			"time service"),
		Entry("when the URL with a trailing slash is not found", status("POST", "/mcp/", 404), "challenge.slash", "404",
			"without a redirect"),
		Entry("when the URL with a trailing slash redirects", status("POST", "/mcp/", 307, "Location", "/mcp"),
			"challenge.slash", "307", "/mcp/"),
		Entry("when the documents are cacheable for a year",
			header(serverPath, "Cache-Control", "public, max-age=31536000"), "cache.headers", "31536000",
			"max-age=300"),
		Entry("when the documents are not cacheable", header(resourcePath, "Cache-Control", "no-store"),
			"cache.headers", "no-store", "max-age=300"),
	)

	It("checks the stream of a session when HTTP+SSE is not supported", func(ctx SpecContext) {
		found := examine(ctx, NewFront(withoutOlder), true).Of("flow.stream")
		Expect(found.Status).To(Equal("ok"), found.Seen)
		Expect(found.Seen).To(ContainSubstring("the stream of a session"))
	})

	DescribeTable("reports the one failure of a login and its remedy",
		func(ctx SpecContext, spoil func(*Front), id, seen, mend string) {
			named(examine(ctx, NewFront(spoil), true), id, seen, mend)
		},
		Entry("when events are buffered", Label("long"), buffered, "flow.stream", "no event arrives",
			"proxy_buffering off"),
		Entry("when events of sessions are buffered", Label("long"), both(buffered, withoutOlder), "flow.stream",
			"no event arrives", "proxy_buffering off"),
		Entry("when the server publishes no document for doctor", func(f *Front) {
			f.adjust = func(c *service.Config) { c.DoctorClient = false }
		}, "flow.client", "invalid_client", "doctor-client: true"),
		Entry("when the code is refused", granted(func(r *http.Response) {
			r.StatusCode = http.StatusBadRequest
		}), "flow.exchange", "400", "log of the authorization server"),
		Entry("when the response with the tokens is cacheable", granted(func(r *http.Response) {
			r.Header.Del("Cache-Control")
		}), "flow.exchange", "Cache-Control", "no-store"),
		Entry("when the proxy removes the token", withoutToken, "flow.tools", "Unauthorized", "Authorization"),
		Entry("when the refresh fails", refusedRefresh, "flow.refresh", "invalid_grant",
			"log of the authorization server"),
		Entry("when the state is missing", back(func(query url.Values) {
			query.Del("state")
		}), "flow.approve", "another state", "unchanged"),
		Entry("when iss is wrong", back(func(query url.Values) {
			query.Set("iss", "https://other.example")
		}), "flow.approve", "https://other.example", "unchanged"),
		Entry("when the revocation endpoint is missing", status("POST", "/oauth/revoke", 404), "flow.revoke", "404",
			"revocation endpoint"),
		Entry("when revoked tokens still work", status("POST", "/oauth/revoke", 200), "flow.revoke", "200",
			"each token"),
	)
})

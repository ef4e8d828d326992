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
)

const (
	serverPath   = "/.well-known/oauth-authorization-server"
	resourcePath = "/.well-known/oauth-protected-resource/mcp"
	rootPath     = "/.well-known/oauth-protected-resource"
)

// login returns the flags for a check with a whole login.
func login(ctx context.Context, f *Front) []string {
	return []string{"--token", f.world.Token, "--client-id", f.world.PublishDoctor(ctx), "--ca",
		Trust(f.world.Clients.server)}
}

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
	outOfReach = func(f *Front) { // the authorization server cannot fetch the document
		f.before(func(r *http.Request) {
			if r.URL.Path == "/oauth/authorize" && r.URL.RawQuery != "" {
				f.world.Clients.Serve("/doctor.json", func(w http.ResponseWriter, _ *http.Request) {
					http.Error(w, "down", http.StatusBadGateway)
				})
			}
		})
	}
)

var _ = Describe("Checking a broken deployment", Label("doctor"), func() {
	examine := func(ctx context.Context, front *Front, whole bool) Diagnosis {
		args := append([]string{front.URL() + "/mcp", "--timeout", patience.String()}, front.asks...)
		switch {
		case whole:
			args = append(args, login(ctx, front)...)
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
		Expect(found.Breaks).NotTo(BeEmpty())
		Expect(d.Next).To(ContainSubstring("mend " + id))
		Expect(d.Code).To(Equal(1))
	}

	DescribeTable("reports the one failure and its remedy",
		func(ctx SpecContext, spoil func(*Front), id, seen, mend string) {
			named(examine(ctx, NewFront(spoil), false), id, seen, mend)
		},
		Entry("when the issuer is http behind a proxy with TLS", httpIssuer, "resource.addresses",
			"but clients use https", "serve --issuer"),
		Entry("when URLs have an internal host name", func(f *Front) {
			f.issuer = "http://localhost:1"
		}, "resource.addresses", "another host", "public URL"),
		Entry("when CORS is missing on the documents", header(serverPath, "Access-Control-Allow-Origin"),
			"cors.metadata", serverPath, "Access-Control-Allow-Origin: *"),
		Entry("when CORS is missing on the token endpoint", header("/oauth/token", "Access-Control-Allow-Origin"),
			"cors.token", "/oauth/token", "errors too"),
		Entry("when web pages cannot read the challenge",
			both(ownOrigin, header("/mcp", "Access-Control-Expose-Headers")), "cors.endpoint", "WWW-Authenticate",
			"Expose-Headers"),
		Entry("when resource has a trailing slash", rewriting(resourcePath, func(text string) string {
			return strings.ReplaceAll(text, `/mcp"`, `/mcp/"`)
		}), "resource.identifier", "only the trailing slash", "Publish"),
		Entry("when resource is the origin", rewriting(resourcePath, func(text string) string {
			return strings.ReplaceAll(text, `/mcp"`, `"`)
		}), "resource.identifier", "not the MCP endpoint", "Publish"),
		Entry("when the metadata is behind a redirect", status("GET", resourcePath, 308, "Location", resourcePath+"/"),
			"resource.document", "308", "exempt /.well-known/*"),
		Entry("when the server metadata is behind a redirect", status("GET", serverPath, 301, "Location", "/login"),
			"server.document", "301", "exempt /.well-known/*"),
		Entry("when the server metadata is missing", status("GET", serverPath, 404), "server.document",
			"404", "Publish"),
		Entry("when the challenge names another URL than the document's",
			rewritten("/mcp", "WWW-Authenticate", resourcePath, "/wrong/place"),
			"resource.document", "not at the URL in the challenge", "try no other URL"),
		Entry("when the response is a page instead of the document", rewriting(resourcePath, func(string) string {
			return "<html>"
		}), "resource.document", "not a JSON object", "own pages"),
		Entry("when the content type of the resource metadata is wrong",
			header(resourcePath, "Content-Type", "text/plain"), "resource.type", "text/plain",
			"Content-Type: application/json"),
		Entry("when the content type of the server metadata is wrong",
			header(serverPath, "Content-Type", "application/octet-stream"), "server.type", "octet-stream",
			"Content-Type: application/json"),
		Entry("when the clock is five minutes ahead", dated(5*time.Minute), "reach.clock", "ahead of this computer's",
			"time service"),
		Entry("when the clock is five minutes behind", dated(-5*time.Minute), "reach.clock", "behind this computer's",
			"time service"),
		Entry("when the token endpoint is not found", status("POST", "/oauth/token", 404), "token.answer", "404",
			"token_endpoint"),
		Entry("when the token endpoint rejects POST", status("POST", "/oauth/token", 405), "token.answer", "405",
			"accept POST"),
		Entry("when the token endpoint redirects", status("POST", "/oauth/token", 301, "Location", "/oauth/token/"),
			"token.answer", "301", "token_endpoint"),
		Entry("when token responses are cacheable", header("/oauth/token", "Cache-Control", "public, max-age=60"),
			"token.cache", "public", "no-store"),
		Entry("when only dynamic registration is supported",
			both(member(serverPath, "client_id_metadata_document_supported", nil),
				member(serverPath, "registration_endpoint", "https://x.example/register")), "server.documents",
			"dynamic registration only", "client_id_metadata_document_supported"),
		Entry("when neither documents nor registration are supported",
			member(serverPath, "client_id_metadata_document_supported", false), "server.documents", "neither",
			"registered by hand"),
		Entry("when the certificate has expired", expired, "tls.certificate", "expired", "Renew"),
		Entry("when the certificate is for another name", func(f *Front) {
			overTLS(f)
			f.server.TLS = certified("192.0.2.1", time.Now().Add(time.Hour*24*90))
		}, "tls.certificate", "192.0.2.1", "name in the URL"),
		Entry("when the CA is unknown", both(overTLS, asking("--no-ca")), "tls.certificate",
			"unknown authority", "--ca"),
		Entry("when WWW-Authenticate comes twice", changing("/mcp", func(r *http.Response) {
			r.Header.Add("WWW-Authenticate", r.Header.Get("WWW-Authenticate"))
		}), "challenge.header", "2 WWW-Authenticate headers", "Send the header once"),
		Entry("when WWW-Authenticate is lost", header("/mcp", "WWW-Authenticate"), "challenge.header", "without",
			"must not remove it"),
		Entry("when WWW-Authenticate is malformed", header("/mcp", "WWW-Authenticate", `Bearer resource_metadata="`),
			"challenge.header", "resource_metadata", "RFC 9110"),
		Entry("when the resource names no authorization server", member(resourcePath, "authorization_servers", nil),
			"resource.servers", "missing", "authorization_servers"),
		Entry("when the issuer is another one", member(serverPath, "issuer", "https://other.example"), "server.issuer",
			"https://other.example", "byte for byte"),
		Entry("when the token endpoint is not named", member(serverPath, "token_endpoint", nil), "server.endpoints",
			"token_endpoint is missing", "absolute URL"),
		Entry("when PKCE is not supported", member(serverPath, "code_challenge_methods_supported", []string{"plain"}),
			"server.pkce", "plain", "S256"),
		Entry("when every client needs a secret", member(serverPath, "token_endpoint_auth_methods_supported", nil),
			"server.public_clients", "missing", "none"),
		Entry("when response types are not listed", member(serverPath, "response_types_supported", nil),
			"server.responses", "missing", "code"),
		Entry("when the authorization endpoint is not found", status("GET", "/oauth/authorize", 404), "authorize.page",
			"404", "proxy"),
		Entry("when the connection breaks off", answering("POST", "/mcp", hangUp), "reach.answer", "EOF", "proxy"),
		Entry("when the endpoint needs no token", unchallenged(200), "challenge.status", "200", "bearer check"),
		Entry("when the endpoint sends clients to a login page", unchallenged(302), "challenge.status", "302", "401"),
		Entry("when the endpoint responds with 403 instead of 401", unchallenged(403), "challenge.status",
			"403", "401"),
		Entry("when the endpoint is not found", unchallenged(404), "challenge.status", "404", "/mcp"),
		Entry("when GET of the endpoint returns a page", status("GET", "/mcp", 200, "Content-Type", "text/html"),
			"challenge.stream", "text/html", "past pages"),
		Entry("when a wrong token causes a server error", wrongToken(500), "challenge.wrong_token", "500",
			"invalid_token"),
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
		}, "tls.certificate", "only", "Renew"),
		Entry("when the clock is a minute off", dated(time.Minute), "reach.clock", "ahead of this computer's",
			"time service"),
		Entry("when the challenge names no metadata",
			header("/mcp", "WWW-Authenticate", `Bearer error="invalid_token"`), "challenge.metadata",
			"no resource_metadata", "absolute URL"),
		Entry("when the endpoint neither allows nor refuses origins", originsIgnored, "cors.endpoint",
			"without CORS headers", "web pages"),
		Entry("when the authorization endpoint fails without parameters", status("GET", "/oauth/authorize", 500),
			"authorize.page", "500", "400"),
		Entry("when a second scheme is offered",
			rewritten("/mcp", "WWW-Authenticate", `, scope="mcp"`, `, Basic realm="x"`), "challenge.header",
			"2 challenges", "alone"),
		Entry("when the challenge for a wrong token has no error",
			rewritten("/mcp", "WWW-Authenticate", `error="invalid_token", `, ""), "challenge.wrong_token",
			"invalid_token", "401"),
		Entry("when the Inspector may not read the documents", both(
			preflightAllows(resourcePath, "MCP-Protocol-Version"), preflightAllows(serverPath, "MCP-Protocol-Version")),
			"cors.metadata", "Content-Type, which the MCP Inspector sends", "Content-Type"),
		Entry("when the URL with a trailing slash is not found", status("POST", "/mcp/", 404), "challenge.slash", "404",
			"without a redirect"),
		Entry("when the URL with a trailing slash redirects", status("POST", "/mcp/", 307, "Location", "/mcp"),
			"challenge.slash", "307", "/mcp/"),
		Entry("when the document at the root differs", rewriting(rootPath, func(text string) string {
			return strings.ReplaceAll(text, "/mcp", "/other")
		}), "resource.root", "/other", "same document"),
		Entry("when the document is not at the well-known URL",
			both(rewritten("/mcp", "WWW-Authenticate", resourcePath, rootPath), status("GET", resourcePath, 500)),
			"resource.well_known", "500", "proxy"),
		Entry("when an issuer has a trailing slash", slashedIssuer, "resource.servers", "slash",
			"without a trailing slash"),
		Entry("when the resource lists offline_access",
			member(resourcePath, "scopes_supported", []string{"mcp", "offline_access"}), "resource.scopes",
			"offline_access", "authorization server"),
		Entry("when refresh tokens are not supported",
			member(serverPath, "grant_types_supported", []string{"authorization_code"}), "server.grants",
			"authorization_code", "refresh_token"),
		Entry("when offline_access is not listed", member(serverPath, "scopes_supported", []string{"mcp"}),
			"server.grants", "scopes_supported", "offline_access"),
		Entry("when iss support is not advertised",
			member(serverPath, "authorization_response_iss_parameter_supported", nil), "server.iss", "not true", "iss"),
		Entry("when the OpenID configuration is an error", status("GET", "/.well-known/openid-configuration", 500),
			"server.openid", "500", "404"),
		Entry("when the documents are cacheable for a year",
			header(serverPath, "Cache-Control", "public, max-age=31536000"), "metadata.cache", "31536000",
			"max-age=300"),
		Entry("when the documents are not cacheable", header(resourcePath, "Cache-Control", "no-store"),
			"metadata.cache", "no-store", "max-age=300"),
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
		Entry("when the authorization server cannot fetch the client's document", outOfReach, "flow.client",
			"invalid_client", "DNS"),
		Entry("when the client's document is missing", documentDown, "flow.document", "404", "--print-client-document"),
		Entry("when the code is refused", granted(func(r *http.Response) {
			r.StatusCode = http.StatusBadRequest
		}), "flow.exchange", "400", "log of the authorization server"),
		Entry("when the response with the tokens is cacheable", granted(func(r *http.Response) {
			r.Header.Del("Cache-Control")
		}), "flow.cache", "Cache-Control", "no-store"),
		Entry("when the proxy removes the token", withoutToken, "flow.tools", "Unauthorized", "Authorization"),
		Entry("when the refresh fails", refusedRefresh, "flow.refresh", "invalid_grant",
			"log of the authorization server"),
		Entry("when the state is missing", back(func(query url.Values) {
			query.Del("state")
		}), "flow.approve", "state", "exactly as it came"),
		Entry("when iss is wrong", back(func(query url.Values) {
			query.Set("iss", "https://other.example")
		}), "flow.approve", "https://other.example", "Send iss"),
		Entry("when the revocation endpoint is missing", status("POST", "/oauth/revoke", 404), "flow.revoke", "404",
			"RFC 7009"),
		Entry("when revoked tokens still work", status("POST", "/oauth/revoke", 200), "flow.revoked", "200",
			"each token"),
	)
})

package features_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service"
)

var _ = Describe("A gateway to an MCP server", Label("gateway"), func() {
	var upstream *UpstreamServer
	BeforeEach(func() { upstream = NewUpstream(apiKey) })

	DescribeTable("lets a client connect, list and call, in revision",
		Label("U4", "U6", "U12"), func(ctx SpecContext, revision string) {
			world := NewGateway(upstream.URL + "/mcp")
			talk := world.Converse(ctx, revision, world.NewClient().Connect(ctx).Access)
			Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf("shout", "delete_all", "hang"))
			Expect(talk.Use(ctx, "shout", params{"text": "hello"}).Text()).To(Equal("HELLO"))
			Expect(upstream.Asked()).
				To(HaveEach(HaveField("Header", HaveKeyWithValue("Authorization", []string{"Bearer " + apiKey}))))
		}, revisions(batching, headers, sessions, stateless))

	It("refuses HTTP+SSE with a clear error", Label("U13"), func(ctx SpecContext) {
		world := NewGateway(upstream.URL + "/mcp")
		access := world.NewClient().Connect(ctx).Access
		before := len(upstream.Asked())
		talk := &Conversation{World: world, Revision: httpSSE, Access: access}
		talk.target = world.MCP() + "/message"
		refused := Send(talk.Request(ctx, http.MethodGet))
		Expect(refused.StatusCode).To(Equal(http.StatusMethodNotAllowed))
		Expect(refused.Text).
			To(ContainSubstring("HTTP+SSE of 2024-11-05 is not supported: use Streamable HTTP at " + world.MCP()))
		Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
		Expect(upstream.Asked()).To(HaveLen(before))
	})

	Context("forwarding to the upstream", func() {
		It("sends neither Pasteport's tokens nor identity headers of the client",
			Label("U5", "J13", "G14"), func(ctx SpecContext) {
				world := NewGateway(upstream.URL + "/mcp")
				client := world.NewClient()
				tokens := client.Connect(ctx)
				talk := world.Converse(ctx, sessions, tokens.Access)
				spoiled := func(r *http.Request) {
					for _, name := range []string{
						"Cookie", "X-Pasteport-Subject", "X_Pasteport_Subject", "X-Forwarded-User", "X-Forwarded-For",
						"Forwarded", "Remote-User", "X-Remote-User",
						"X-Auth-Request-Email", "X-Api-Key", "Mcp-Session_Id", "Mcp_Session_Id", "Proxy-Authorization",
						"Keep-Alive", "Te", "Upgrade", "Origin",
						"X-Request-Id", "Content-Encoding", "Signature", "Signature-Input",
					} {
						r.Header.Set(name, "mallory-was-here")
					}
					r.Header.Set("Origin", world.Issuer)
					r.Header.Set("Connection", "keep-alive, Mcp-Foo")
					r.Header.Set("Mcp-Foo", "mallory-was-here")
					r.Header.Set("Mcp-Param-Colour", "blue")
				}
				Expect(talk.Post(ctx, "tools/list", params{}, spoiled).StatusCode).To(Equal(http.StatusOK))
				refreshed := client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
				talk.Access = refreshed.Access
				Expect(talk.Use(ctx, "shout", params{"text": "x"}).Text()).To(Equal("X"))
				Expect(client.Revoke(ctx, refreshed.Refresh).StatusCode).To(Equal(http.StatusOK))

				wire := upstream.Wire()
				Expect(wire).To(ContainSubstring(apiKey))
				Expect(wire).To(ContainSubstring("Mcp-Param-Colour: blue"))
				Expect(wire).NotTo(ContainSubstring("mallory-was-here"))
				Expect(wire).NotTo(ContainSubstring(world.Issuer), "no Origin")
				for _, secret := range []string{tokens.Access, tokens.Refresh, refreshed.Access, refreshed.Refresh} {
					Expect(wire).NotTo(ContainSubstring(secret))
					Expect(wire).NotTo(ContainSubstring(base64.StdEncoding.EncodeToString([]byte(secret))))
				}
			})

		It("forwards the headers in forward-headers", Label("U5"), func(ctx SpecContext) {
			world := NewGateway(upstream.URL+"/mcp", func(c *service.Config) {
				c.Gateway.Headers = []string{"x-toolsets"}
			})
			talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
			Expect(talk.Post(ctx, "tools/list", params{}, with("X-Toolsets", "all"), with("X-Other", "no")).StatusCode).
				To(Equal(http.StatusOK))
			Expect(upstream.Asked()[0].Header).
				To(And(HaveKeyWithValue("X-Toolsets", []string{"all"}), Not(HaveKey("X-Other"))))
		})

		It("forwards the parameters in forward-parameters, and refuses others by name", Label("A30", "U34", "U5"),
			func(ctx SpecContext) {
				world := NewGateway(upstream.URL+"/mcp?own=a+b", func(c *service.Config) {
					c.Gateway.Parameters = []string{"read_only", "tools", "own"}
				})
				client := world.NewClient()
				named := func(v url.Values) { v.Set("resource", world.MCP()+"?read_only=true") }
				form := client.Exchange(client.Authorize(ctx, named))
				named(form)
				talk := world.Converse(ctx, stateless, client.Token(ctx, form).Tokens().Access)
				list := func(query string) Response {
					return talk.Post(ctx, "tools/list", params{}, func(r *http.Request) { r.URL.RawQuery = query })
				}
				Expect(list("read_only=true&tools=a&tools=b%26c").StatusCode).To(Equal(http.StatusOK))
				Expect(upstream.Asked()).To(ConsistOf(HaveField("URL.RawQuery",
					"own=a+b&read_only=true&tools=a&tools=b%26c")))
				for _, access := range []string{talk.Access, ""} {
					talk.Access = access
					Expect(list("read_only=true&toolset=s3cret")).To(And(HaveField("StatusCode", http.StatusBadRequest),
						HaveField("Text", And(ContainSubstring(`\"toolset\"`), Not(ContainSubstring("s3cret"))))))
					Expect(list("own=c").StatusCode).To(Equal(http.StatusBadRequest), "upstream sets it")
					Expect(list("a;b").StatusCode).To(Equal(http.StatusBadRequest))
				}
				Expect(upstream.Asked()).To(HaveLen(1))
			})

		It("sends the request id of the log and the response", func(ctx SpecContext) {
			world := NewGateway(upstream.URL + "/mcp")
			answer := world.Call(ctx, world.NewClient().Connect(ctx).Access)
			Expect(upstream.Asked()[0].Header.Get("X-Request-Id")).
				To(And(Not(BeEmpty()), Equal(answer.Header.Get("X-Request-Id"))))
		})

		It("sends no identity with credential none", Label("U6"), func(ctx SpecContext) {
			open := NewUpstream()
			world := NewGateway(open.URL+"/mcp", func(c *service.Config) {
				c.Gateway.Credential, c.Verification.Verifier, c.Verification.TokenFile = bootstrap.CredentialNone,
					service.VerifierFile, tokenFileOf(ctx, apiKey)
			})
			Expect(world.Call(ctx, world.NewClient().Connect(ctx).Access).StatusCode).To(Equal(http.StatusOK))
			Expect(open.Asked()).To(ConsistOf(HaveField("Header", Not(HaveKey("Authorization")))))
		})
	})

	It("passes on the listed headers of the upstream's answer and no others", Label("U15"), func(ctx SpecContext) {
		world := NewGateway(upstream.URL + "/mcp")
		access := world.NewClient().Connect(ctx).Access
		passed := map[string]string{
			"Content-Type":     "application/json",
			"Content-Language": "en",
			"Content-Length":   "58",
			"Date":             "Wed, 21 Oct 2015 07:28:00 GMT",
			"Etag":             `"1"`,
			"Last-Modified":    "Wed, 21 Oct 2015 07:28:00 GMT",
			"Mcp-Foo":          "bar",
			"Ratelimit":        `"day";r=9`,
			"Ratelimit-Policy": `"day";q=10`,
			"Retry-After":      "7",
			"Traceparent":      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		}
		upstream.Answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Set-Cookie", "early=1")
			w.WriteHeader(http.StatusEarlyHints)
			for _, name := range []string{
				"Access-Control-Allow-Origin", "Alt-Svc", "Content-Location", "Link", "Location", "Nel", "Refresh",
				"Set-Cookie", "Strict-Transport-Security", "Www-Authenticate", "X-Accel-Redirect", "X-Api-Key",
				"X-Mcp-Foo", "X-Pasteport-Subject", "X-Ratelimit-Limit", "X-Request-Id",
			} {
				w.Header().Set(name, "not=listed")
			}
			for name, value := range passed {
				w.Header().Set(name, value)
			}
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}`)
		})
		answer := world.Call(ctx, access)
		Expect(answer.StatusCode).To(Equal(http.StatusForbidden))
		Expect(answer.Text).To(HavePrefix(`{"jsonrpc":"2.0","id":1`))
		for name, value := range passed {
			Expect(answer.Header).To(HaveKeyWithValue(name, []string{value}))
			answer.Header.Del(name)
		}
		Expect(answer.Header.Values("X-Request-Id")).To(ConsistOf(Not(Equal("not=listed"))))
		Expect(slices.Collect(maps.Keys(answer.Header))).To(ConsistOf("X-Request-Id", "X-Content-Type-Options", "Vary"))
	})

	It("removes a header of the answer that repeats the key", Label("U15"), func(ctx SpecContext) {
		world := NewGateway(upstream.URL + "/mcp")
		access := world.NewClient().Connect(ctx).Access
		repeated := []string{apiKey, "key " + strings.ToUpper(apiKey), hex.EncodeToString([]byte(apiKey)),
			base64.StdEncoding.EncodeToString([]byte("user:" + apiKey)), url.QueryEscape(apiKey)}
		upstream.Answer(func(w http.ResponseWriter, _ *http.Request) {
			for _, name := range []string{
				"Cache-Control", "Content-Language", "Date", "Etag", "Last-Modified", "Mcp-Foo", "Mcp-Session-Id",
				"Mcp-" + apiKey, "Ratelimit", "Retry-After", "Traceparent",
			} {
				w.Header()[name] = repeated
			}
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		})
		answer := world.Call(ctx, access)
		Expect(answer.Text).To(HavePrefix(`{"jsonrpc":"2.0","id":1`))
		Expect(slices.Collect(maps.Keys(answer.Header))).
			To(ConsistOf("Cache-Control", "Content-Length", "Content-Type", "Date", "Vary", "X-Content-Type-Options",
				"X-Request-Id"))
		for _, text := range repeated {
			Expect(fmt.Sprint(answer.Header)).NotTo(ContainSubstring(text))
		}
	})

	It("keeps a header that contains a short key by chance", Label("U15"), func(ctx SpecContext) {
		upstream := NewUpstream("event")
		world := NewGateway(upstream.URL + "/mcp")
		answer := world.Call(ctx, world.NewClient().ConnectAs(ctx, "event").Access)
		Expect(answer.StatusCode).To(Equal(http.StatusOK))
		Expect(answer.Header.Get("Content-Type")).To(Equal("text/event-stream"))
	})

	It("returns active content as plain text", Label("U15"), func(ctx SpecContext) {
		world := NewGateway(upstream.URL + "/mcp")
		access := world.NewClient().Connect(ctx).Access
		for contentType, passed := range map[string]string{
			"Text/HTML ; charset=latin-1": "text/plain; charset=utf-8",
			"application/json, text/html": "text/plain; charset=utf-8",
			"image/svg+xml":               "text/plain; charset=utf-8",
			"application/json":            "application/json",
		} {
			upstream.Answer(failing(http.StatusNotFound, contentType, "<script>alert(1)</script>"))
			answer := world.Call(ctx, access)
			Expect(answer.Header.Values("Content-Type")).To(Equal([]string{passed}))
			Expect(answer.Text).To(Equal("<script>alert(1)</script>"))
		}
	})

	It("forwards an encoded tool name unchanged", Label("U4"), func(ctx SpecContext) {
		world := NewGateway(upstream.URL + "/mcp")
		talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		talk.Post(ctx, "tools/call", params{"name": "café", "arguments": params{}},
			with("Mcp-Name", "=?base64?Y2Fmw6k=?="))
		Expect(upstream.Asked()[0].Header.Get("Mcp-Name")).To(Equal("=?base64?Y2Fmw6k=?="))
		Expect(upstream.Asked()[0].Host).To(Equal(upstream.Listener.Addr().String()), "not the gateway's own host")
	})

	It("does not forward trailers", Label("U15", "J13"), func(ctx SpecContext) {
		world := NewGateway(upstream.URL + "/mcp")
		access := world.NewClient().Connect(ctx).Access
		upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "X-Announced")
			_, _ = io.WriteString(w, "{}")
			w.Header().Set("X-Announced", r.Header.Get("Authorization"))
			w.Header().Set(http.TrailerPrefix+"Set-Cookie", "a=b")
		})
		Expect(world.Call(ctx, access).Trailer).To(BeEmpty())
	})

	It("responds to HEAD itself, because many servers respond with a stream", Label("U4"), func(ctx SpecContext) {
		world := NewGateway(upstream.URL + "/mcp")
		talk := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
		asked := len(upstream.Asked())
		Expect(Send(talk.Request(ctx, http.MethodHead)).StatusCode).To(Equal(http.StatusOK))
		Expect(upstream.Asked()).To(HaveLen(asked))
	})

	It("ends the grant when the upstream rejects its token, and sends no further requests",
		Label("U8", "I12", "G7"), func(ctx SpecContext) {
			world := NewGateway(upstream.URL + "/mcp")
			client := world.NewClient()
			tokens, others := client.Connect(ctx), world.NewClient().Connect(ctx)
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
			upstream.Revoke()
			refused := world.Call(ctx, tokens.Access)
			Expect(refused).To(BeChallenged(world, "invalid_token"))
			Expect(refused.Text).To(ContainSubstring(`"error":"invalid_token"`))
			asked := len(upstream.Asked())
			Expect(world.Call(ctx, tokens.Access)).To(BeChallenged(world, "invalid_token"))
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens().Error).To(Equal("invalid_grant"))
			Expect(upstream.Asked()).To(HaveLen(asked))
			Expect(world.Call(ctx, others.Access)).
				To(BeChallenged(world, "invalid_token"), "each grant ends separately")
			Expect(world.Log.String()).To(ContainSubstring(`"reason":"host_token_invalid"`))
		})

	It("challenges every running call when one of them finds that the token is invalid",
		Label("U8", "G16"), func(ctx SpecContext) {
			world := NewGateway(upstream.URL + "/mcp")
			access := world.NewClient().Connect(ctx).Access
			var all sync.WaitGroup
			arrived := make(chan struct{}, 8)
			upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
				if arrived <- struct{}{}; len(arrived) == cap(arrived) {
					upstream.Revoke() // so that the verifier gets a 401 too
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				<-r.Context().Done()
			})
			for range cap(arrived) {
				all.Go(func() {
					defer GinkgoRecover()
					Expect(world.Call(ctx, access)).To(BeChallenged(world, "invalid_token"))
				})
			}
			all.Wait()
		}, SpecTimeout(time.Minute))

	Context("ending calls and streams", Label("G16"), func() {
		It("cancels the upstream request when the client disconnects", Label("U4"), func(ctx SpecContext) {
			world := NewGateway(upstream.URL + "/mcp")
			talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
			calling, hangUp := context.WithCancel(ctx)
			r := talk.message(calling, "tools/call", params{"name": "hang", "arguments": params{}})
			go func() {
				answer, err := noRedirects.Do(r)
				if err == nil {
					_ = answer.Body.Close()
				}
			}()
			Eventually(upstream.Hanging).WithContext(ctx).WithTimeout(patience).Should(Receive())
			hangUp()
			Eventually(upstream.Cancelled).WithContext(ctx).WithTimeout(patience).Should(Receive())
		}, SpecTimeout(time.Minute))

		It("closes the streams of an ended grant cleanly, to the client and to the upstream", func(ctx SpecContext) {
			world := NewGateway(upstream.URL + "/mcp")
			talk := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
			answer, err := noRedirects.Do(talk.Request(ctx, http.MethodGet))
			Expect(err).NotTo(HaveOccurred())
			Expect(answer.StatusCode).To(Equal(http.StatusOK))
			Expect(world.EndGrantsOf(ctx, apiKey)).To(Equal(1))
			_, err = io.ReadAll(answer.Body)
			Expect(err).NotTo(HaveOccurred(), "the body is complete")
			Expect(answer.Body.Close()).To(Succeed())
		}, SpecTimeout(time.Minute))
	})
})

// tokenFileOf returns a token file with the hash of a token, from "pasteport hash-token".
func tokenFileOf(ctx context.Context, token string) string {
	GinkgoHelper()
	file := GinkgoT().TempDir() + "/tokens"
	ran := RunTyping(ctx, token+"\n", "hash-token", "--subject", "Adá,", "--role", "editor", "--role", "café,tea")
	Expect(ran.Code).To(Equal(0), ran.Err)
	Expect(os.WriteFile(file, []byte(ran.Out), 0o600)).To(Succeed())
	return file
}

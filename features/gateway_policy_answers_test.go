package features_test

import (
	"context"
	"io"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Filtering answers with rules for tools, prompts and resources",
	Label("gateway", "U26", "U27"), func() {
		l := &restrictedLibrary{}
		BeforeEach(func() { l.upstream = NewLibrary() })

		const hidden = `{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"shout"},{"name":"delete_all"}],` +
			`"ttlMs":60000,"cacheScope":"public"}}`
		const shown = `{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"shout"}],"ttlMs":60000,` +
			`"cacheScope":"private"}}`
		ask := func(ctx context.Context, revision string, answer http.HandlerFunc) Response {
			GinkgoHelper()
			l.open(ctx, "/mcp")
			bob := l.as(ctx, "token-of-bob", revision)
			l.upstream.Answer(answer)
			return bob.Post(ctx, "tools/list", params{})
		}

		It("forbids shared caches to store the filtered answers", func(ctx SpecContext) {
			answer := ask(ctx, stateless, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Etag", `"1"`)
				_, _ = io.WriteString(w, hidden)
			})
			Expect(answer.Text).To(Equal(shown))
			Expect(answer.ContentLength).To(BeEquivalentTo(len(shown)))
			Expect(answer.Header).NotTo(HaveKey("Etag"))
			Expect(l.upstream.Asked()[0].Header.Get("Accept-Encoding")).To(Equal("identity"))
		})

		It("filters answers on another stream too, as after a reconnect, and drops what it cannot read",
			func(ctx SpecContext) {
				l.open(ctx, "/mcp")
				bob := l.as(ctx, "token-of-bob", sessions)
				l.upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w,
						"id: 4\nevent: message\ndata: "+hidden+"}\n\nid: 5\nevent: message\ndata: "+hidden+"\n\n")
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
				})
				resumed := bob.Request(ctx, http.MethodGet)
				resumed.Header.Set("Last-Event-ID", "4")
				Expect(Follow(resumed).Next("message")).To(Equal(shown))
			})

		It("passes on only those notices about a resource that the person may read", func(ctx SpecContext) {
			l.open(ctx, "/mcp")
			bob := l.as(ctx, "token-of-bob", sessions)
			updated := func(uri string) string {
				return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`
			}
			l.upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "data: "+updated("file:///secret/pay.txt")+"\n\ndata: ["+
					updated("file:///secret/b")+","+updated("file:///public/a.txt")+"]\n\n"+
					"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\"}\n\n")
			})
			Expect(strings.TrimPrefix(Send(bob.Request(ctx, http.MethodGet)).Text, ": ok\n\n")).
				To(Equal("data: [" + updated("file:///public/a.txt") + "]\n\n" +
					"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\"}\n\n"))
		})

		It("passes on every byte without rules", func(ctx SpecContext) {
			l.world = NewGateway(l.upstream.URL + "/mcp")
			talk := l.world.Converse(ctx, stateless, l.world.NewClient().Connect(ctx).Access)
			l.upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Encoding", "x-unknown")
				_, _ = io.WriteString(w, hidden+"}")
			})
			answer := talk.Post(ctx, "tools/list", params{}, with("Accept-Encoding", "gzip"))
			Expect(answer.Text).To(Equal(hidden + "}"))
			Expect(l.upstream.Asked()[0].Header.Get("Accept-Encoding")).To(Equal("identity"))
		})
	})

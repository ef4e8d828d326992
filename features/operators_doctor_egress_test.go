package features_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// says returns a handler that answers with a status, a media type and a body.
func says(status int, mediaType, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// PublishClient publishes a valid document and returns its client_id.
func (s *ClientSite) PublishClient(path string) string {
	return s.Publish(path,
		fmt.Sprintf(`{"client_id":%q,"client_name":"Spec Client","redirect_uris":["http://127.0.0.1/callback"]}`,
			s.URL(path)))
}

var _ = Describe("Checking whether documents of clients can be fetched from this computer",
	Label("doctor", "CIMD", "C41", "C42"), func() {
		const challenge = "<!DOCTYPE html><title>Just a moment...</title>"
		var site *ClientSite
		BeforeEach(func() {
			workingFolder()
			site = NewClientSite()
		})
		egress := func(ctx context.Context, documents ...string) Diagnosis {
			return Diagnose(ctx, append([]string{"--egress", "--dev", "--ca", Trust(site.server)}, documents...)...)
		}

		DescribeTable("says of a host", func(ctx SpecContext, answer http.HandlerFunc, seen string, mend ...string) {
			site.Serve("/client.json", answer)
			d := egress(ctx, site.URL("/client.json"))
			Expect(d.Code).To(Equal(1))
			Expect(d.Checks).To(HaveLen(1))
			Expect(d.Checks[0].Status).To(Equal("failure"))
			Expect(d.Checks[0].Seen).To(HavePrefix(seen))
			for _, way := range mend {
				Expect(d.Checks[0].Mend).To(ContainSubstring(way))
				Expect(d.Next).To(ContainSubstring(way))
			}
		},
			Entry("with a bot challenge, that it blocks",
				says(403, "text/html; charset=UTF-8", challenge, "cf-mitigated", "challenge"),
				`blocked: status 403, cf-mitigated "challenge", HTML instead of JSON: https://`, "client-documents",
				"pasteport clients fetch", "metadata-proxy"),
			Entry("with a challenge without a mark, that it blocks", says(403, "text/html", challenge),
				"blocked: status 403, HTML instead of JSON: "),
			Entry("with a challenge of status 503, that it blocks",
				says(503, "text/html", challenge, "cf-mitigated", "challenge"),
				`blocked: cf-mitigated "challenge", HTML`),
			Entry("with a page of status 200, that it blocks", says(200, "text/html", challenge),
				"blocked: HTML instead of JSON: "),
			Entry("that allows no more requests, that it blocks", says(429, "application/json", "{}"),
				"blocked: status 429: ", "client-documents"),
			Entry("that fails, that it is unreachable", says(503, "text/html", "down"), "unreachable: ", "firewall"),
			Entry("that closes the connection, that it is unreachable", func(http.ResponseWriter, *http.Request) {
				panic(http.ErrAbortHandler)
			}, "unreachable: ", "firewall"),
			Entry("without the document, that the address is wrong", says(404, "text/html", "gone"), "wrong: ",
				"maker of the client"),
			Entry("that redirects, that the address is wrong",
				says(302, "text/html", "", "Location", "/login"), "wrong: "),
			Entry("with another document, that it is wrong",
				says(200, "application/json", `{"client_id":"https://client.example/c.json"}`), "wrong: ",
				"maker of the client"),
			Entry("with no JSON, that it is wrong", says(200, "application/json", "{"), "wrong: "),
		)

		It("lists reachable, blocked, unreachable and wrong documents, in the order of the arguments",
			Label("long"), func(ctx SpecContext) {
				site.Serve("/challenge", says(403, "text/html", challenge, "cf-mitigated", "challenge"))
				site.Serve("/hanging", hanging)
				down := NewClientSite()
				down.server.Close()
				documents := []string{site.PublishClient("/good"), site.URL("/challenge"), site.URL("/absent"),
					site.URL("/hanging"), down.URL("/client.json")}
				d := egress(ctx, documents...)
				Expect(d.Code).To(Equal(1))
				Expect(d.Err).To(ContainSubstring("4 of 5 checks failed"))
				var seen []string
				for i, check := range d.Checks {
					Expect(check.Asks).To(Equal("fetch " + documents[i]))
					kind, _, _ := strings.Cut(check.Seen, ":")
					seen = append(seen, kind)
				}
				Expect(seen).To(Equal([]string{"reachable", "blocked", "wrong", "unreachable", "unreachable"}))

				readable := Doctor(ctx,
					"", append([]string{"--egress", "--dev", "--ca", Trust(site.server)}, documents[:2]...)...)
				Expect(readable.Out).To(MatchRegexp(`(?m)^ok       document +reachable: https://`))
				Expect(readable.Out).To(MatchRegexp(
					`(?m)^1 ok, 0 warnings, 1 failure, 0 skipped\n` +
						`next: mend document, then run doctor --egress again: pin the document`))
			})

		It("succeeds when every document is reachable", func(ctx SpecContext) {
			d := egress(ctx, site.PublishClient("/one"), site.PublishClient("/two"))
			Expect(d.Code).To(BeZero(), d.Err)
			Expect(d.Result).To(Equal("ok"))
			Expect(d.Next).To(HavePrefix("nothing to do"))
		})

		It("fetches only from addresses that the service fetches from", Label("C17", "C18"), func(ctx SpecContext) {
			d := Diagnose(ctx, "--egress", "--dev", "https://10.0.0.1/client.json")
			Expect(d.Checks[0].Seen).
				To(And(HavePrefix("unreachable: "), ContainSubstring("prohibited IP address: 10.0.0.1")))
		})

		It("fetches through the proxy of the service, and prints no password", Label("C51"), func(ctx SpecContext) {
			proxy := NewEgressProxy()
			proxy.Password, proxy.site = "known-to-few", site
			site.Publish("/client.json", `{"client_id":"`+beyond+
				`/client.json","client_name":"Spec Client","redirect_uris":["http://127.0.0.1/callback"]}`)
			write("proxy", proxy.URL().String()+"\n")
			through := []string{"--egress", "--dev", "--ca", Trust(site.server), "--metadata-proxy", "file:proxy",
				beyond + "/client.json"}
			Expect(Diagnose(ctx, through...).Result).To(Equal("ok"))
			Expect(proxy.Connects.Load()).To(BeEquivalentTo(1))
			write("proxy", strings.Replace(proxy.URL().String(), "few", "many", 1)+"\n")
			d := Diagnose(ctx, through...)
			Expect(d.Checks[0].Seen).To(ContainSubstring("the proxy refuses to connect: 407"))
			Expect(d.Out + d.Err).NotTo(ContainSubstring("known-to"))
		})

		It("reads the settings of the service from its file", func(ctx SpecContext) {
			write("pasteport.yaml", "dev: true\n")
			document := site.PublishClient("/client.json")
			Expect(Diagnose(ctx, "--egress", "--ca", Trust(site.server), document).Result).To(Equal("ok"))
			write("pasteport.yaml", "dev: true\nmetadata-proxy: socks5://proxy.internal\n")
			ran := Doctor(ctx, "", "--egress", document)
			Expect(ran.Code).To(Equal(1))
			Expect(ran.Err).To(ContainSubstring("pasteport.yaml:2"))
			Expect(os.Remove("pasteport.yaml")).To(Succeed())
		})

		It("tries the well-known clients without arguments", func(ctx SpecContext) {
			d := Diagnose(ctx, "--egress", "--metadata-proxy", "http://127.0.0.1:1")
			Expect(d.Code).To(Equal(1))
			for _, name := range []string{"Claude", "Claude Code", "ChatGPT", "VS Code"} {
				Expect(d.Of(name).Asks).To(HavePrefix("fetch https://"))
			}
		})

		DescribeTable("fails with a usage error", func(ctx SpecContext, says string, args ...string) {
			d := Doctor(ctx, "", append([]string{"--egress"}, args...)...)
			Expect(d.Code).To(Equal(2))
			Expect(d.Err).To(ContainSubstring(says))
		},
			Entry("with a token", "checks no server", "--token", "x"),
			Entry("with a document on http", "https URLs", "http://client.example/client.json"),
			Entry("with an origin", "checks no server", "--origin", "http://localhost:6274"),
			Entry("with an address that no client_id may have", "not a public DNS name",
				"https://127.0.0.1/client.json"),
		)

		It("is recommended by the trace when a document cannot be fetched",
			Label("trace"), func(ctx SpecContext) {
				operated := Operate()
				for rule, answer := range map[string]http.HandlerFunc{"C41": func(http.ResponseWriter, *http.Request) {
					panic(http.ErrAbortHandler)
				}, "C42": says(403, "text/html", challenge)} {
					client := operated.NewClient()
					operated.Clients.Serve(client.path(), answer)
					client.AskFor(ctx, client.Request())
					Eventually(func() []Traced {
						return operated.Traces(ctx)
					}).WithContext(ctx).WithTimeout(patience).Should(
						ContainElement(And(HaveField("Client", client.ID),
							HaveField("Hint", ContainSubstring("pasteport doctor --egress")))), rule)
				}
			})
	})

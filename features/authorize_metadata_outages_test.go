package features_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/pasteport/pasteport/bootstrap/demosite"
)

// Down stops the site's server until up restarts it at the same address.
func (s *ClientSite) Down() (up func()) {
	GinkgoHelper()
	addr := s.server.Listener.Addr().String()
	s.server.Close()
	return func() {
		GinkgoHelper()
		listener := must(net.Listen("tcp", addr))
		again := newSiteServer(s)
		Expect(again.Listener.Close()).To(Succeed())
		again.Listener = listener
		again.StartTLS()
		DeferCleanup(again.Close)
		s.server = again
	}
}

// lists publishes a document with these redirect URIs.
func (c *Client) lists(cacheControl string, redirects ...string) {
	GinkgoHelper()
	listed := must(json.Marshal(redirects))
	c.says(http.StatusOK, http.Header{"Cache-Control": {cacheControl}},
		`{"client_id":"ID","client_name":"Spec Client","redirect_uris":`+string(listed)+`}`)
}

// inTheMeantime is within the minimum cache time of a document.
const inTheMeantime = time.Minute

var _ = Describe("Losing the host of a client's document", Label("CIMD", "C36", "C41"), func() {
	world := EachWorld()
	client := world.EachClient()
	var good http.HandlerFunc
	BeforeEach(func() { good = world.Clients.documents[client.ID[len(world.Clients.URL("")):]] })
	ask := func(ctx context.Context) Response { return client.AskFor(ctx, client.Request()) }

	It("has no effect while the document is fresh, and never affects connected clients",
		Label("C37", "C47", "C57"), func(ctx SpecContext) {
			tokens, code, page := client.Connect(ctx), client.Authorize(ctx), client.Consent(ctx)
			up := world.Clients.Down()
			Expect(ask(ctx).StatusCode).To(Equal(http.StatusOK))
			world.Clock.Advance(inTheMeantime)
			Expect(ask(ctx).Text).To(ContainSubstring("could not check the app’s description just now"))

			Expect(page.Approve(ctx, world.Token).StatusCode).To(Equal(http.StatusSeeOther))
			Expect(client.Token(ctx, client.Exchange(code)).StatusCode).To(Equal(http.StatusOK))
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
			Expect(client.Revoke(ctx, tokens.Refresh).StatusCode).To(Equal(http.StatusOK))
			up()
			Expect(ask(ctx).StatusCode).To(Equal(http.StatusOK))
		})

	DescribeTable("shows an error page and is not cached when the host",
		Label("N8"), func(ctx SpecContext, ill http.HandlerFunc) {
			document := client.ID[len(world.Clients.URL("")):]
			world.Clients.Serve(document, ill)
			Expect(ask(ctx)).To(BeAPage(http.StatusBadGateway, "invalid_client"))
			world.Clients.Serve(document, good)
			// The failed fetch may still be running.
			Eventually(func() int { return ask(ctx).StatusCode }).WithTimeout(patience).Should(Equal(http.StatusOK))
			Expect(world.Clients.Fetches()).To(BeEquivalentTo(2))
		},
		Entry("fails", Label("C42"), func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
		}),
		Entry("stops in the middle of its response", Label("long", "C15"),
			func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"client_id":`))
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				panic(http.ErrAbortHandler) // a return would complete the response, for a client that still reads
			}),
	)

	It("does not delay requests for other clients", Label("long", "C39", "C21"), func(ctx SpecContext) {
		other := world.NewClient()
		reached, gone := make(chan struct{}), make(chan struct{})
		world.Clients.Serve(client.ID[len(world.Clients.URL("")):], func(_ http.ResponseWriter, r *http.Request) {
			close(reached)
			<-r.Context().Done()
		})
		go func() {
			defer GinkgoRecover()
			defer close(gone)
			Expect(ask(ctx)).To(BeAPage(http.StatusBadGateway, "invalid_client"))
		}()
		<-reached
		other.Connect(ctx)
		Expect(gone).NotTo(BeClosed())
		Eventually(gone).WithTimeout(patience).Should(BeClosed())
	})
})

var _ = Describe("Adding a redirect URI to a document", Label("CIMD", "C50"), func() {
	const longLived = "max-age=86400"
	world := EachWorld()
	client := world.EachClient()
	BeforeEach(func(ctx SpecContext) {
		client.lists(longLived, "https://client.example/old")
		client.Redirect = "https://client.example/old"
		client.Consent(ctx)
		client.Redirect = "https://client.example/new"
	})
	ask := func(ctx context.Context) Response { return client.AskFor(ctx, client.Request()) }
	refused := BeASafePage(http.StatusBadRequest, "invalid_request")

	It("takes effect immediately, while the old document is still fresh", func(ctx SpecContext) {
		client.lists(longLived, "https://client.example/old", "https://client.example/new")
		client.Connect(ctx)
		client.Redirect = "https://client.example/old"
		client.Consent(ctx)
		Expect(world.Clients.Fetches()).To(BeEquivalentTo(2))
	})

	It("takes effect for all concurrent requests with one fetch", Label("C39"), func(ctx SpecContext) {
		client.lists(longLived, "https://client.example/new")
		Expect(atOnce(20, func() Response { return ask(ctx) })).To(HaveEach(HaveField("StatusCode", http.StatusOK)))
		Expect(world.Clients.Fetches()).To(BeEquivalentTo(2))
	})

	It("causes at most one fetch a minute for unlisted redirect URIs", Label("C46"), func(ctx SpecContext) {
		Expect(atOnce(20, func() Response { return ask(ctx) })).To(HaveEach(refused))
		for range 20 {
			client.Redirect += "x"
			Expect(ask(ctx)).To(refused)
		}
		Expect(world.Clients.Fetches()).To(BeEquivalentTo(2))
		world.Clock.Advance(time.Minute)
		Expect(ask(ctx)).To(refused)
		Expect(world.Clients.Fetches()).To(BeEquivalentTo(3))
	})

	It("causes no fetch for a redirect URI that is never allowed", Label("A11", "A14"), func(ctx SpecContext) {
		for _, client.Redirect = range []string{"http://client.example/plain", "cursor://callback",
			"https://client.example/#x"} {
			Expect(ask(ctx)).To(BeAPage(http.StatusBadRequest, "invalid_request"))
		}
		Expect(world.Clients.Fetches()).To(BeEquivalentTo(1))
	})

	It("does not affect listed redirect URIs when the fetch fails", Label("C41", "C46"), func(ctx SpecContext) {
		up := world.Clients.Down()
		Expect(ask(ctx)).To(refused)
		client.Redirect = "https://client.example/old"
		Expect(ask(ctx).StatusCode).To(Equal(http.StatusOK))
		up()
	})
})

var _ = Describe("Concurrent requests for an unknown client", Label("N8", "C39"), func() {
	It("fetches its document once, even if the first requester disconnects", func(ctx SpecContext) {
		world := NewWorld()
		client := world.NewClient()
		document := client.ID[len(world.Clients.URL("")):]
		good := world.Clients.documents[document]
		fetched, release := make(chan struct{}), make(chan struct{})
		world.Clients.Serve(document, func(w http.ResponseWriter, r *http.Request) {
			close(fetched) // a second fetch panics here
			<-release
			good(w, r)
		})

		first, hangUp := context.WithCancel(ctx)
		firstAnswer := make(chan error, 1)
		go func() {
			r, _ := http.NewRequestWithContext(first, http.MethodGet, world.Issuer+"/oauth/authorize?"+client.Request().
				Encode(), nil)
			_, err := noRedirects.Do(r)
			firstAnswer <- err
		}()
		<-fetched

		var sent sync.WaitGroup
		sent.Add(49)
		asking := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) {
			sent.Done()
		}})
		answers := make(chan []Response)
		go func() { answers <- atOnce(49, func() Response { return client.AskFor(asking, client.Request()) }) }()
		sent.Wait()
		hangUp()
		Expect(<-firstAnswer).To(MatchError(context.Canceled))
		// For the first requester only.
		Eventually(world.Log.String).WithTimeout(patience).Should(ContainSubstring("cimd_rejected"))
		close(release)
		Expect(<-answers).To(HaveEach(HaveField("StatusCode", http.StatusOK)))
		Expect(world.Clients.Fetches()).To(BeEquivalentTo(1))
	})
})

// challenged answers like a vendor's edge that takes this server for a bot.
func challenged(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cf-Mitigated", "challenge")
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write([]byte("<!DOCTYPE html><title>Just a moment...</title>"))
}

func statusOnly(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

var _ = Describe("Connecting while the document of an app cannot be fetched", Label("CIMD", "C57"), func() {
	const day = 24 * time.Hour
	world := EachWorld()
	client := world.EachClient()
	var good http.HandlerFunc
	var approvedOn string
	BeforeEach(func(ctx SpecContext) {
		good = world.Clients.documents[client.path()]
		approvedOn = world.Clock.Now().UTC().Format(time.DateOnly)
		client.Connect(ctx)
		world.Clock.Advance(day)
	})
	serve := func(answer http.HandlerFunc) { world.Clients.Serve(client.path(), answer) }
	ask := func(ctx context.Context) Response { return client.AskFor(ctx, client.Request()) }
	unchecked := func() types.GomegaMatcher {
		return And(HaveField("StatusCode", http.StatusOK), HaveField("Text", And(
			ContainSubstring("This site could not check the app’s description just now; it was last checked on"),
			ContainSubstring("<time>"+approvedOn+"</time>"))))
	}
	isRefused := BeASafePage(http.StatusBadGateway, "invalid_client")

	DescribeTable("goes on for people who have connected before and for new ones, when its host",
		func(ctx SpecContext, answer http.HandlerFunc, reason string) {
			serve(answer)
			Expect(ask(ctx)).To(unchecked())
			another := world.TokenFor(ctx, "lin", demosite.Reader)
			for _, token := range []string{world.Token, another} {
				answer := client.Consent(ctx).Approve(ctx, token)
				Expect(answer.StatusCode).To(Equal(http.StatusSeeOther), answer.Text)
				Expect(client.Token(ctx, client.Exchange(answer.Target().Query().Get("code"))).StatusCode).
					To(Equal(http.StatusOK))
			}
			Expect(world.Decisions()).To(ContainElement(And(HavePrefix("cimd_unchecked "), ContainSubstring(reason))))
			Expect(world.Decisions()).NotTo(ContainElement(HavePrefix("cimd_rejected")))
		},
		Entry("answers 403 with a challenge for browsers", http.HandlerFunc(challenged),
			"the status of the response is 403"),
		Entry("answers 429", statusOnly(http.StatusTooManyRequests), "the status of the response is 429"),
		Entry("never answers", Label("long"), hanging, "get the document"),
		Entry("closes the connection", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}), "get the document"),
	)

	It("tells it again after a wrong token, in the log, in the trace and in a metric",
		Label("B8", "H8"), func(ctx SpecContext) {
			serve(challenged)
			again := client.Consent(ctx).Approve(ctx, "demo_wrong")
			Expect(again.StatusCode).To(Equal(http.StatusForbidden))
			Expect(again.Text).To(ContainSubstring("<time>" + approvedOn + "</time>"))
			Expect(linesWith(world.Log.String(), `"msg":"cimd_unchecked"`)).
				To(ConsistOf(And(ContainSubstring("status of the response is 403"),
					ContainSubstring(`"checked_at":"`+approvedOn))))
			Eventually(func() []string {
				return world.reasons(ctx, "client_metadata")
			}).WithTimeout(patience).
				Should(ContainElement(And(HavePrefix("C57"), ContainSubstring("its version of "+approvedOn),
					ContainSubstring("status of the response is 403"))))
		})

	DescribeTable("ends after a definite answer", func(ctx SpecContext, definite http.HandlerFunc, status int) {
		serve(challenged)
		Expect(ask(ctx)).To(unchecked())
		serve(definite)
		world.Clock.Advance(time.Minute)
		Expect(ask(ctx)).To(BeASafePage(status, "invalid_client"))
		serve(challenged)
		world.Clock.Advance(time.Minute)
		Expect(ask(ctx)).To(isRefused)
		world.Restart()
		Expect(ask(ctx)).To(isRefused)
		serve(good)
		Expect(ask(ctx).StatusCode).To(Equal(http.StatusOK))
	},
		Entry("404", statusOnly(http.StatusNotFound), http.StatusBadGateway),
		Entry("an invalid document", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"client_id":"https://other.example/c"}`))
		}), http.StatusBadRequest),
	)

	It("refuses a page instead of a document, but keeps the document", Label("C42"), func(ctx SpecContext) {
		serve(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/html") })
		Expect(ask(ctx)).To(isRefused)
		serve(challenged)
		Expect(ask(ctx)).To(unchecked())
	})

	It("ends thirty days after the last successful check", Label("I20"), func(ctx SpecContext) {
		serve(challenged)
		world.Clock.Advance(29*day - time.Minute)
		Expect(ask(ctx)).To(unchecked())
		world.Clock.Advance(time.Minute)
		Expect(ask(ctx)).To(isRefused)
	})

	It("refuses a redirect URI as soon as one fetch has returned a document without it",
		Label("A12"), func(ctx SpecContext) {
			serve(challenged)
			Expect(ask(ctx)).To(unchecked())
			client.lists("no-store", "https://client.example/new")
			world.Clock.Advance(time.Minute)
			Expect(ask(ctx)).To(BeASafePage(http.StatusBadRequest, "invalid_request"))
			serve(challenged)
			world.Clock.Advance(time.Minute)
			Expect(ask(ctx)).To(BeASafePage(http.StatusBadRequest, "invalid_request"))
		})

	It("goes on at a replica that has never fetched the document, unless another has seen it withdrawn",
		Label("C58", "I22"), func(ctx SpecContext) {
			askAt := func(replica *Replica) Response {
				return Get(ctx, replica.Address+"/oauth/authorize?"+client.Request().Encode())
			}
			serve(challenged)
			Expect(askAt(world.Replica())).To(unchecked())
			serve(statusOnly(http.StatusNotFound))
			Expect(ask(ctx)).To(isRefused)
			serve(challenged)
			Expect(askAt(world.Replica())).To(isRefused)
		})

	It("stores documents of approved clients only", Label("C58", "A34"), func(ctx SpecContext) {
		stranger := world.NewClient()
		stranger.Consent(ctx)
		Expect(world.Rows(ctx)["client_documents"]).To(ConsistOf(ContainSubstring(client.path())))
		stranger.Connect(ctx)
		Expect(world.Rows(ctx)["client_documents"]).
			To(ConsistOf(ContainSubstring(client.path()), ContainSubstring(stranger.path())))
	})
})

func (w *World) reasons(ctx context.Context, kind string) (reasons []string) {
	GinkgoHelper()
	for _, connection := range must(w.service.Authz.Trace(ctx)) {
		for _, step := range connection.Steps {
			if string(step.Kind) == kind {
				reasons = append(reasons, strings.TrimSpace(step.Rule+" "+step.Reason))
			}
		}
	}
	return reasons
}

// uncheckedPage returns the consent page of a client whose document cannot be fetched again.
func uncheckedPage(ctx context.Context) Response {
	GinkgoHelper()
	client := NewWorld().NewClient()
	client.Consent(ctx)
	client.World.Clients.Serve(client.path(), challenged)
	client.World.Clock.Advance(time.Hour)
	return client.AskFor(ctx, client.Request())
}

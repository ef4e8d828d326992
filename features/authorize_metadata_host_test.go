package features_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Down stops the site's server until up restarts it at the same address.
func (s *ClientSite) Down() (up func()) {
	GinkgoHelper()
	addr := s.server.Listener.Addr().String()
	s.server.Close()
	return func() {
		GinkgoHelper()
		listener, err := net.Listen("tcp", addr)
		Expect(err).NotTo(HaveOccurred())
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
	listed, err := json.Marshal(redirects)
	Expect(err).NotTo(HaveOccurred())
	c.says(http.StatusOK, http.Header{"Cache-Control": {cacheControl}},
		`{"client_id":"ID","client_name":"Spec Client","redirect_uris":`+string(listed)+`}`)
}

// inTheMeantime is within the minimum cache time of a document.
const inTheMeantime = time.Minute

var _ = Describe("Losing the host of a client's document", Label("CIMD", "C36", "C41"), func() {
	var world *World
	var client *Client
	var good http.HandlerFunc
	BeforeEach(func() {
		world = NewWorld()
		client = world.NewClient()
		good = world.Clients.documents[client.ID[len(world.Clients.URL("")):]]
	})
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
	var world *World
	var client *Client
	BeforeEach(func(ctx SpecContext) {
		world = NewWorld()
		client = world.NewClient()
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

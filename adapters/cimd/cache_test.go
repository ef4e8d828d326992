package cimd

import (
	"context"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

var _ = Describe("Caching a client's metadata document", func() {
	var (
		publisher *site
		clock     *handClock
		directory *Directory
		id        oauth.ClientID
	)

	BeforeEach(func() {
		publisher, clock = newSite(), newClock()
		directory = openDirectory(Config{Now: clock.now, RootCAs: publisher.roots(), AllowLoopback: true}, patient())
		id = publisher.client("/client.json")
	})

	ask := func(ctx context.Context) error {
		_, err := directory.Client(ctx, id, "")
		return err
	}
	const done, other = "https://app.example/done", "https://app.example/other"
	publish := func(redirect string) {
		publisher.respond(http.StatusOK, strings.Replace(document(id.String()), done, redirect, 1), "Cache-Control",
			"max-age=86400", "ETag", `"one"`, "Last-Modified", "Mon, 27 Jul 2026 12:00:00 GMT")
	}
	lists := func(ctx context.Context, redirect string) bool {
		GinkgoHelper()
		metadata, err := directory.Client(ctx, id, redirect)
		Expect(err).NotTo(HaveOccurred())
		return !metadata.LacksRedirectURI(redirect)
	}

	It("keeps it fresh for the time in the headers, from a minute to a day",
		Label("C37", "N6"), func(ctx SpecContext) {
			const sent, expires = "Tue, 28 Jul 2026 12:00:00 GMT", "Tue, 28 Jul 2026 12:05:00 GMT"
			for want, headers := range map[time.Duration][][]string{
				time.Minute: {nil, {"Cache-Control", "max-age=5"}, {"Cache-Control", "max-age=600", "Age", "900"},
					{"Cache-Control", "no-store, max-age=600"}, {"Cache-Control", "max-age=600, no-cache"},
					{"Cache-Control", "private, max-age=600"}, {"Cache-Control", "max-age=-600"},
					{"Cache-Control", "max-age"}, {"Cache-Control", "max-age=600", "Age", "-1"},
					{"Date", expires, "Expires", sent}, {"Date", sent, "Expires", "0"}},
				5 * time.Minute:  {{"Date", sent, "Expires", expires}},
				7 * time.Minute:  {{"Cache-Control", "max-age=600", "Age", "180"}},
				10 * time.Minute: {{"Date", sent, "Expires", expires, "Cache-Control", "public, max-age=600"}},
				20 * time.Minute: {{"Cache-Control", "max-age=600, s-maxage=1200"}},
				24 * time.Hour: {{"Cache-Control", "max-age=604800"},
					{"Cache-Control", "max-age=99999999999999999999"}},
			} {
				for _, set := range headers {
					kept := newEntry("value", nil, headerOf(set...), clock.now())
					Expect(kept.fresh(clock.now().Add(want-time.Nanosecond))).To(BeTrue(), "%q", set)
					Expect(kept.fresh(clock.now().Add(want))).To(BeFalse(), "%q", set)
				}
			}
			kept := newEntry("value", nil, headerOf("Cache-Control", "max-age=9999999"), clock.now())
			Expect(kept.fresh(clock.now().Add(-time.Minute))).To(BeFalse(), "when the clock is set back")
		})

	It("is revalidated when it has expired, and renewed by the headers of the response",
		Label("C38", "N6"), func(ctx SpecContext) {
			publish(done)
			Expect(ask(ctx)).To(Succeed())
			clock.advance(24 * time.Hour)
			var asked http.Header
			publisher.answer = func(w http.ResponseWriter, r *http.Request) {
				asked = r.Header.Clone()
				w.Header().Set("Cache-Control", "max-age=600")
				w.WriteHeader(http.StatusNotModified)
			}
			Expect(ask(ctx)).To(Succeed())
			Expect(asked).To(HaveKeyWithValue("If-None-Match", []string{`"one"`}))
			Expect(asked).To(HaveKeyWithValue("If-Modified-Since", []string{"Mon, 27 Jul 2026 12:00:00 GMT"}))
			clock.advance(10*time.Minute - time.Nanosecond)
			Expect(ask(ctx)).To(Succeed())
			Expect(publisher.fetches.Load()).To(BeEquivalentTo(2))
		})

	It("limits every wait to the time of one exchange", Label("C39"), func(ctx SpecContext) {
		directory.limits.fetch = 20 * time.Millisecond
		gate := make(chan struct{})
		defer close(gate)
		publisher.answer = func(http.ResponseWriter, *http.Request) { <-gate }
		Expect(ask(ctx)).To(And(MatchError(context.DeadlineExceeded), MatchError(client.ErrUnreachable)))
	}, SpecTimeout(10*time.Second))

	It("does not ask the budget again for ten seconds once it has expired", Label("C21", "C50"), func(ctx SpecContext) {
		publish(done)
		Expect(lists(ctx, done)).To(BeTrue())
		clock.advance(24 * time.Hour)
		leave := fill(ctx, directory)
		Expect(lists(ctx, done)).To(BeTrue())
		leave()
		Expect(lists(ctx, done)).To(BeTrue())
		Expect(publisher.fetches.Load()).To(BeEquivalentTo(1))
		clock.advance(renewInterval)
		Expect(lists(ctx, done)).To(BeTrue())
		Expect(publisher.fetches.Load()).To(BeEquivalentTo(2))
	})

	It("does not fetch it while the budget is exhausted", Label("C21", "C50"), func(ctx SpecContext) {
		publish(done)
		Expect(lists(ctx, done)).To(BeTrue())
		leave := fill(ctx, directory)
		Expect(lists(ctx, other)).To(BeFalse())
		Expect(publisher.fetches.Load()).To(BeEquivalentTo(1))
		leave()
		publish(other)
		Expect(lists(ctx, other)).To(BeTrue(), "a refusal of the budget is no fetch")
	})
})

func headerOf(set ...string) http.Header {
	header := http.Header{}
	for i := 0; i < len(set); i += 2 {
		header.Set(set[i], set[i+1])
	}
	return header
}

package cimd

import (
	"context"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Caching a client's metadata document", func() {
	var (
		client    *site
		clock     *handClock
		directory *Directory
		id        oauth.ClientID
	)

	BeforeEach(func() {
		client, clock = newSite(), newClock()
		directory = openDirectory(Config{Now: clock.now, RootCAs: client.roots(), AllowLoopback: true}, patient())
		id = client.client("/client.json")
	})

	ask := func(ctx context.Context) error {
		_, err := directory.Client(ctx, id, "")
		return err
	}

	const sent, expires = "Tue, 28 Jul 2026 12:00:00 GMT", "Tue, 28 Jul 2026 12:05:00 GMT"

	DescribeTable("keeps it fresh", Label("C37", "N6"),
		func(ctx SpecContext, want time.Duration, headers ...string) {
			client.respond(http.StatusOK, document(id.String()), headers...)
			Expect(ask(ctx)).To(Succeed())
			clock.advance(want - time.Nanosecond)
			Expect(ask(ctx)).To(Succeed())
			Expect(client.fetches.Load()).To(BeEquivalentTo(1), "still fresh")
			clock.advance(time.Nanosecond)
			Expect(ask(ctx)).To(Succeed())
			Expect(client.fetches.Load()).To(BeEquivalentTo(2), "no longer fresh")
		},
		Entry("for a minute without headers", time.Minute),
		Entry("for max-age", 10*time.Minute, "Cache-Control", "public, max-age=600"),
		Entry("for max-age less the age", 7*time.Minute, "Cache-Control", "max-age=600", "Age", "180"),
		Entry("for s-maxage, which overrides max-age", 20*time.Minute, "Cache-Control", "max-age=600, s-maxage=1200"),
		Entry("until Expires without max-age", 5*time.Minute, "Date", sent, "Expires", expires),
		Entry("for max-age, which overrides Expires", 10*time.Minute, "Date", sent, "Expires", expires, "Cache-Control",
			"max-age=600"),
		Entry("for a minute when max-age is less", time.Minute, "Cache-Control", "max-age=5"),
		Entry("for a minute when max-age is zero", time.Minute, "Cache-Control", "max-age=0"),
		Entry("for a minute when the age exceeds max-age", time.Minute, "Cache-Control", "max-age=600", "Age", "900"),
		Entry("for a day when max-age is more", 24*time.Hour, "Cache-Control", "max-age=604800"),
		Entry("for a minute with no-store", time.Minute, "Cache-Control", "no-store, max-age=600"),
		Entry("for a minute with no-cache", time.Minute, "Cache-Control", "max-age=600, no-cache"),
		Entry("for a minute with private", time.Minute, "Cache-Control", "private, max-age=600"),
		Entry("for a minute when max-age is negative", time.Minute, "Cache-Control", "max-age=-600"),
		Entry("for a minute when max-age is no number", time.Minute, "Cache-Control", "max-age=soon"),
		Entry("for a minute when max-age has no value", time.Minute, "Cache-Control", "max-age"),
		Entry("for a day when max-age overflows", 24*time.Hour, "Cache-Control", "max-age=99999999999999999999"),
		Entry("for a minute when the age is no number", time.Minute, "Cache-Control", "max-age=600", "Age", "-1"),
		Entry("for a minute when Expires is before Date", time.Minute, "Date", expires, "Expires", sent),
		Entry("for a minute when Expires is no date", time.Minute, "Date", sent, "Expires", "0"),
	)

	It("distinguishes client_ids that differ in a byte", Label("C10", "C36"), func(ctx SpecContext) {
		Expect(ask(ctx)).To(Succeed())
		id = client.client("/client.json?")
		Expect(ask(ctx)).To(Succeed())
		Expect(client.fetches.Load()).To(BeEquivalentTo(2))
	})

	Context("when it has expired", Label("C38", "N6"), func() {
		var asked http.Header

		BeforeEach(func(ctx SpecContext) {
			client.respond(http.StatusOK, document(id.String()), "ETag", `"one"`, "Last-Modified",
				"Mon, 27 Jul 2026 12:00:00 GMT")
			Expect(ask(ctx)).To(Succeed())
			clock.advance(time.Minute)
		})

		unchanged := func(headers ...string) {
			client.respond(http.StatusNotModified, "", headers...)
			answer := client.answer
			client.answer = func(w http.ResponseWriter, r *http.Request) { asked = r.Header.Clone(); answer(w, r) }
		}

		It("revalidates it and renews it by the headers of the response", func(ctx SpecContext) {
			unchanged("Cache-Control", "max-age=600")
			Expect(ask(ctx)).To(Succeed())
			Expect(asked).To(HaveKeyWithValue("If-None-Match", []string{`"one"`}))
			Expect(asked).To(HaveKeyWithValue("If-Modified-Since", []string{"Mon, 27 Jul 2026 12:00:00 GMT"}))
			clock.advance(10*time.Minute - time.Nanosecond)
			Expect(ask(ctx)).To(Succeed())
			Expect(client.fetches.Load()).To(BeEquivalentTo(2))
		})

		It("revalidates with the newest validator", func(ctx SpecContext) {
			unchanged("ETag", `"two"`)
			Expect(ask(ctx)).To(Succeed())
			clock.advance(time.Minute)
			Expect(ask(ctx)).To(Succeed())
			Expect(asked).To(HaveKeyWithValue("If-None-Match", []string{`"two"`}))
			Expect(asked).To(HaveKeyWithValue("If-Modified-Since", []string{"Mon, 27 Jul 2026 12:00:00 GMT"}))
		})
	})

	It("fetches nothing for a flight that starts just after another one has landed",
		Label("C39"), func(ctx SpecContext) {
			Expect(ask(ctx)).To(Succeed())
			Expect(directory.documents.refresh(ctx, id, nil)).NotTo(BeNil())
			Expect(client.fetches.Load()).To(BeEquivalentTo(1))
		})

	It("limits every wait to the time of one exchange", Label("C39"), func(ctx SpecContext) {
		directory.limits.fetch = 20 * time.Millisecond
		gate := make(chan struct{})
		defer close(gate)
		client.answer = func(http.ResponseWriter, *http.Request) { <-gate }
		Expect(ask(ctx)).To(And(MatchError(context.DeadlineExceeded), MatchError(oauth.ErrMetadataUnreachable)))
	}, SpecTimeout(10*time.Second))
})

var _ = Describe("Caching a document while the clock is set back", Label("C37", "I23"), func() {
	It("keeps it fresh for a day at most", func() {
		clock := newClock()
		kept := newEntry("value", nil, http.Header{"Cache-Control": {"max-age=9999999"}},
			clock.now())
		Expect(kept.fresh(clock.now())).To(BeTrue())
		Expect(kept.fresh(clock.now().Add(-time.Minute))).To(BeFalse())
	})
})

var _ = Describe("Caching a document that lacks a redirect URI", Label("C50"), func() {
	var (
		client    *site
		clock     *handClock
		directory *Directory
		id        oauth.ClientID
	)

	const done, other = "https://app.example/done", "https://app.example/other"

	publish := func(redirects string) {
		client.respond(http.StatusOK, strings.Replace(document(id.String()), done, redirects, 1), "Cache-Control",
			"max-age=86400", "ETag", `"`+redirects[:20]+`"`)
	}
	lists := func(ctx context.Context, redirect string) bool {
		GinkgoHelper()
		metadata, err := directory.Client(ctx, id, redirect)
		Expect(err).NotTo(HaveOccurred())
		return !metadata.LacksRedirectURI(redirect, oauth.ClientMetadataRules{})
	}

	BeforeEach(func(ctx SpecContext) {
		client, clock = newSite(), newClock()
		directory = openDirectory(Config{Now: clock.now, RootCAs: client.roots(), AllowLoopback: true}, patient())
		id = client.client("/client.json")
		publish(done)
		Expect(lists(ctx, done)).To(BeTrue())
	})

	It("fetches it again with a conditional request", Label("C38"), func(ctx SpecContext) {
		var asked http.Header
		client.answer = func(w http.ResponseWriter, r *http.Request) {
			asked = r.Header.Clone()
			w.WriteHeader(http.StatusNotModified)
		}
		Expect(lists(ctx, other)).To(BeFalse())
		Expect(asked).To(HaveKey("If-None-Match"))
		Expect(client.fetches.Load()).To(BeEquivalentTo(2))
	})

	It("does not ask the budget again within ten seconds once it has expired", Label("C21"), func(ctx SpecContext) {
		clock.advance(24 * time.Hour)
		leave := fill(ctx, directory)
		Expect(lists(ctx, done)).To(BeTrue())
		leave()
		Expect(lists(ctx, done)).To(BeTrue())
		Expect(client.fetches.Load()).To(BeEquivalentTo(1))
		clock.advance(renewInterval)
		Expect(lists(ctx, done)).To(BeTrue())
		Expect(client.fetches.Load()).To(BeEquivalentTo(2))
	})

	It("does not fetch it while the budget is exhausted", Label("C21"), func(ctx SpecContext) {
		leave := fill(ctx, directory)
		Expect(lists(ctx, other)).To(BeFalse())
		Expect(client.fetches.Load()).To(BeEquivalentTo(1))
		leave()
		publish(other)
		Expect(lists(ctx, other)).To(BeTrue(), "a refusal of the budget is no fetch")
	})
})

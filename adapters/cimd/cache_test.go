package cimd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
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

	DescribeTable("does not cache failures", Label("C36", "C39"),
		func(ctx SpecContext, status int, body string) {
			client.respond(status, body)
			Expect(ask(ctx)).NotTo(Succeed())
			client.answer = client.publish
			Expect(ask(ctx)).To(Succeed())
			Expect(client.fetches.Load()).To(BeEquivalentTo(2))
		},
		Entry("when the document is missing", http.StatusNotFound, ""),
		Entry("when the document is malformed", http.StatusOK, "{"),
		Entry("when the document is invalid", http.StatusOK, "{}"),
	)

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

		It("uses a changed document", func(ctx SpecContext) {
			client.respond(http.StatusOK, strings.Replace(document(id.String()), "Reader", "Writer", 1))
			metadata, err := directory.Client(ctx, id, "")
			Expect(err).NotTo(HaveOccurred())
			Expect(metadata.Name()).To(Equal("Writer"))
		})

		DescribeTable("fails and does not use the expired document",
			func(ctx SpecContext, status int, body string) {
				client.respond(status, body)
				Expect(ask(ctx)).NotTo(Succeed())
			},
			Entry("when the document was removed", http.StatusGone, ""),
			Entry("when the response is no document", http.StatusNoContent, ""),
			Entry("when the new document is invalid", http.StatusOK, "{}"),
		)
	})

	It("fails on a 304 to an unconditional request", Label("C38"), func(ctx SpecContext) {
		Expect(ask(ctx)).To(Succeed()) // without a validator
		clock.advance(time.Minute)
		client.respond(http.StatusNotModified, "")
		Expect(ask(ctx)).To(MatchError(oauth.ErrMetadataUnreachable))
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

	It("fetches once for fifty concurrent requests, even when the first is canceled",
		Label("C39", "N8"), func(ctx SpecContext) {
			arrived, gate := make(chan struct{}), make(chan struct{})
			client.answer = func(w http.ResponseWriter, r *http.Request) {
				close(arrived)
				<-gate
				client.publish(w, r)
			}
			first, hangUp := context.WithCancel(ctx)
			left := make(chan error, 1)
			go func() { left <- ask(first) }()
			Eventually(ctx, arrived).WithTimeout(10 * time.Second).Should(BeClosed())
			outcomes := askTogether(ctx, 49, ask)
			hangUp()
			Expect(<-left).To(And(MatchError(context.Canceled), MatchError(oauth.ErrMetadataUnreachable)))
			close(gate)
			Expect(outcomes()).To(Succeed())
			Expect(client.fetches.Load()).To(BeEquivalentTo(1))
		})
})

// askTogether starts n requests and returns when all are running. The returned function waits for
// their results.
func askTogether(ctx context.Context, n int, ask func(context.Context) error) func() error {
	var running, done sync.WaitGroup
	failures := make([]error, n)
	running.Add(n)
	for i := range n {
		done.Go(func() {
			running.Done()
			if err := ask(ctx); err != nil {
				failures[i] = fmt.Errorf("asker %d: %w", i, err)
			}
		})
	}
	running.Wait()
	return func() error { done.Wait(); return errors.Join(failures...) }
}

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

	It("returns the new one to requests during the fetch", Label("C39"), func(ctx SpecContext) {
		arrived, gate := make(chan struct{}), make(chan struct{})
		publish(other)
		changed := client.answer
		client.answer = func(w http.ResponseWriter, r *http.Request) { close(arrived); <-gate; changed(w, r) }
		first := make(chan error, 1)
		go func() { _, err := directory.Client(ctx, id, other); first <- err }()
		Eventually(ctx, arrived).WithTimeout(10 * time.Second).Should(BeClosed())
		outcomes := askTogether(ctx, 20, func(ctx context.Context) error {
			metadata, err := directory.Client(ctx, id, other)
			if err == nil && metadata.LacksRedirectURI(other, oauth.ClientMetadataRules{}) {
				return errors.New("this is the old document")
			}
			return err
		})
		close(gate)
		Expect(outcomes()).To(Succeed())
		Expect(<-first).NotTo(HaveOccurred())
		Expect(client.fetches.Load()).To(BeEquivalentTo(2))
	})

	It("tries once a minute while that fails, and keeps the old one", Label("C36"), func(ctx SpecContext) {
		client.respond(http.StatusInternalServerError, "")
		for range 5 {
			Expect(lists(ctx, other)).To(BeFalse())
		}
		Expect(client.fetches.Load()).To(BeEquivalentTo(2))
		clock.advance(time.Minute)
		publish(other)
		Expect(lists(ctx, other)).To(BeTrue())
		Expect(client.fetches.Load()).To(BeEquivalentTo(3))
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

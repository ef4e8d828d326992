package cimd

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// documentStore is a client.DocumentStore in memory.
type documentStore struct {
	documents map[string]client.Document
	saved     int
	err       error // of every call
}

func (s *documentStore) ClientDocument(_ context.Context, url string) (client.Document, error) {
	found, ok := s.documents[url]
	if !ok && s.err == nil {
		return found, oauth.ErrNotFound
	}
	return found, s.err
}

func (s *documentStore) SaveClientDocument(_ context.Context, d client.Document) error {
	s.documents[d.URL] = d
	s.saved++
	return s.err
}

func (s *documentStore) DeleteClientDocument(_ context.Context, url string) error {
	delete(s.documents, url)
	return s.err
}

var _ = Describe("Storing the documents of approved clients", Label("C57", "C58"), func() {
	var (
		publisher  *site
		clock      *handClock
		store      *documentStore
		one, other *Directory
		id         oauth.ClientID
	)
	const old, renewed = "https://app.example/done", "https://app.example/new"

	BeforeEach(func() {
		publisher, clock, store = newSite(), newClock(), &documentStore{documents: map[string]client.Document{}}
		options := Config{
			Now:           clock.now,
			RootCAs:       publisher.roots(),
			AllowLoopback: true,
			Store:         store,
		}
		one, other = openDirectory(options, patient()), openDirectory(options, patient())
		id = publisher.client("/client.json")
	})
	publish := func(redirect string) {
		publisher.respond(http.StatusOK, strings.Replace(document(id.String()), old, redirect, 1), "Cache-Control",
			"max-age=3600")
	}
	redirects := func(ctx context.Context, d *Directory) []string {
		GinkgoHelper()
		found, err := d.Client(ctx, id, "")
		Expect(err).NotTo(HaveOccurred())
		return found.RedirectURIs()
	}
	approve := func(ctx context.Context, d *Directory, redirect string) {
		GinkgoHelper()
		publish(redirect)
		Expect(redirects(ctx, d)).To(ConsistOf(redirect))
		d.Keep(ctx, id)
	}

	It("stores only the documents of approved clients, and each version once", func(ctx SpecContext) {
		publish(old)
		Expect(redirects(ctx, other)).To(ConsistOf(old))
		Expect(store.documents).To(BeEmpty())
		approve(ctx, one, old)
		approve(ctx, one, old)
		Expect(store.saved).To(Equal(1))
		clock.advance(time.Hour)
		approve(ctx, one, renewed)
		approve(ctx, other, renewed)
		Expect(store.saved).To(Equal(2))
		Expect(string(store.documents[id.String()].Body)).To(ContainSubstring(renewed))
	})

	It("does not put an older version in place of a newer one", func(ctx SpecContext) {
		publish(old)
		Expect(redirects(ctx, other)).To(ConsistOf(old))
		clock.advance(time.Minute)
		approve(ctx, one, renewed)
		other.Keep(ctx, id)
		Expect(string(store.documents[id.String()].Body)).To(ContainSubstring(renewed))
	})

	It("forgets a withdrawn one, also where it was only stored", func(ctx SpecContext) {
		approve(ctx, one, old)
		publisher.answer = status(http.StatusGone)
		Expect(other.Client(ctx, id, "")).Error().To(MatchError(client.ErrNoDocument))
		Expect(store.documents).To(BeEmpty())
		publisher.answer = status(http.StatusForbidden)
		Expect(other.Client(ctx, id, "")).Error().To(MatchError(client.ErrUnreachable))
	})

	It("serves the one in memory while the store fails", Label("N14"), func(ctx SpecContext) {
		store.err = errors.New("the database is down")
		approve(ctx, one, old)
		clock.advance(time.Hour)
		publisher.answer = status(http.StatusForbidden)
		Expect(redirects(ctx, one)).To(ConsistOf(old))
		Expect(other.Client(ctx, id, "")).Error().To(MatchError(client.ErrUnreachable))
	})
})

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
)

// documentStore is an oauth.ClientDocumentStore in memory.
type documentStore struct {
	documents map[oauth.Digest]oauth.ClientDocument
	err       error // of every read
}

func (s *documentStore) ClientDocument(_ context.Context, digest oauth.Digest) (oauth.ClientDocument, error) {
	found, ok := s.documents[digest]
	if !ok && s.err == nil {
		return found, oauth.ErrNotFound
	}
	return found, s.err
}

func (s *documentStore) SaveClientDocument(_ context.Context, d oauth.ClientDocument) error {
	if known, found := s.documents[d.Digest()]; !found || !known.CheckedAt.After(d.CheckedAt) {
		s.documents[d.Digest()] = d
	}
	return nil
}

func (s *documentStore) ClientDocuments(context.Context) ([]oauth.ClientDocument, error) {
	return nil, nil
}

var _ = Describe("Sharing the last good documents of clients", Label("C57", "C58", "I22"), func() {
	var (
		client     *site
		clock      *handClock
		store      *documentStore
		one, other *Directory
		id         oauth.ClientID
	)
	const old, renewed = "https://app.example/done", "https://app.example/new"

	BeforeEach(func() {
		client, clock, store = newSite(), newClock(), &documentStore{documents: map[oauth.Digest]oauth.ClientDocument{}}
		options := Config{
			Now:           clock.now,
			RootCAs:       client.roots(),
			AllowLoopback: true,
			Store:         store,
		}
		one, other = openDirectory(options, patient()), openDirectory(options, patient())
		id = client.client("/client.json")
	})
	approve := func(ctx context.Context, d *Directory, redirect string) {
		GinkgoHelper()
		Expect(d.Client(ctx, id, redirect)).NotTo(BeNil())
		d.Keep(id, oauth.Fingerprint{1})
	}
	publish := func(redirect string) {
		client.respond(http.StatusOK, strings.Replace(document(id.String()), old, redirect, 1), "Cache-Control",
			"max-age=86400")
	}
	redirects := func(ctx context.Context, d *Directory) []string {
		GinkgoHelper()
		found, err := d.Client(ctx, id, "")
		Expect(err).NotTo(HaveOccurred())
		return found.RedirectURIs()
	}

	It("uses the version that another replica has stored instead of its own, which no person has approved",
		func(ctx SpecContext) {
			publish(old)
			Expect(redirects(ctx, other)).To(ConsistOf(old))
			approve(ctx, one, old)
			clock.advance(10 * time.Hour)
			publish(renewed)
			Expect(one.Client(ctx, id, renewed)).NotTo(BeNil())
			client.answer = status(http.StatusForbidden)
			clock.advance(20 * 24 * time.Hour)
			for range 2 { // also within ten seconds of the failed fetch
				Expect(redirects(ctx, other)).To(ConsistOf(renewed))
			}
		})

	It("refuses a document that another replica has found withdrawn", func(ctx SpecContext) {
		publish(old)
		Expect(redirects(ctx, other)).To(ConsistOf(old))
		approve(ctx, one, old)
		clock.advance(48 * time.Hour)
		client.answer = status(http.StatusForbidden)
		Expect(redirects(ctx, other)).To(ConsistOf(old))
		client.answer = status(http.StatusNotFound)
		Expect(one.Client(ctx, id, "")).Error().To(MatchError(oauth.ErrMetadataNoDocument))
		client.answer = status(http.StatusForbidden)
		for range 2 {
			Expect(other.Client(ctx, id, "")).Error().To(MatchError(oauth.ErrMetadataNoDocument))
		}
		publish(old)
		clock.advance(time.Minute)
		Expect(redirects(ctx, other)).To(ConsistOf(old))
	})

	It("withdraws a stored document that only another replica had in memory", func(ctx SpecContext) {
		publish(old)
		approve(ctx, one, old)
		clock.advance(48 * time.Hour)
		client.answer = status(http.StatusGone)
		Expect(other.Client(ctx, id, "")).Error().To(HaveOccurred())
		client.answer = status(http.StatusForbidden)
		clock.advance(time.Minute)
		Expect(one.Client(ctx, id, "")).Error().To(MatchError(oauth.ErrMetadataNoDocument))
	})

	It("does not put its own older version in place of a newer one", func(ctx SpecContext) {
		publish(old)
		Expect(redirects(ctx, other)).To(ConsistOf(old))
		clock.advance(10 * time.Hour)
		publish(renewed)
		approve(ctx, one, renewed)
		approve(ctx, other, old)
		Expect(string(store.documents[oauth.DocumentDigest(oauth.MetadataDocument, id.String())].Body)).
			To(ContainSubstring(renewed))
	})

	It("goes on with the document in memory when its row was deleted, or the store fails",
		Label("N14"), func(ctx SpecContext) {
			publish(old)
			approve(ctx, one, old)
			clock.advance(48 * time.Hour)
			client.answer = status(http.StatusForbidden)
			clear(store.documents)
			Expect(redirects(ctx, one)).To(ConsistOf(old))
			store.err = errors.New("the database is down")
			clock.advance(time.Minute)
			Expect(redirects(ctx, one)).To(ConsistOf(old))
		})
})

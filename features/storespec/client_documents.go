package storespec

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

// KeepingDocuments adds the specs of oauth.ClientDocumentStore, for a store that implements it.
func KeepingDocuments(open func() oauth.Store) {
	apart(func() { keepingDocuments(open) })
}

func keepingDocuments(open func() oauth.Store) {
	w := &world{}
	var documents oauth.ClientDocumentStore
	BeforeEach(func() {
		*w = newWorld(open())
		documents = w.store.(oauth.ClientDocumentStore)
	})
	document := func(url string, checkedAt time.Time) oauth.ClientDocument {
		return oauth.ClientDocument{
			Kind:         oauth.MetadataDocument,
			URL:          url,
			Body:         []byte(`{"client_id":"` + url + `"}`),
			ETag:         `"1"`,
			LastModified: "Thu, 01 Jan 2026 00:00:00 GMT",
			CheckedAt:    checkedAt,
			FreshUntil:   checkedAt.Add(time.Hour),
		}
	}
	save := func(ctx context.Context, saved ...oauth.ClientDocument) {
		GinkgoHelper()
		for _, d := range saved {
			Expect(documents.SaveClientDocument(ctx, d)).To(Succeed())
		}
	}
	const one, other = "https://one.example/c", "https://other.example/c"

	It("returns a document as it was saved, and replaces it by a newer version", Label("C58"), func(ctx SpecContext) {
		first, second := document(one, w.now), document(one, w.now.Add(time.Minute))
		second.Body, second.ETag, second.LastModified = []byte(strings.Repeat("x", 64<<10)), "", ""
		save(ctx, first, document(other, w.now))
		Expect(documents.ClientDocument(ctx, first.Digest())).To(Equal(first))
		save(ctx, second)
		Expect(documents.ClientDocument(ctx, first.Digest())).To(Equal(second))
		Expect(documents.ClientDocuments(ctx)).To(Equal([]oauth.ClientDocument{second, document(other, w.now)}))
	})

	It("keeps a metadata document and a key set of the same URL apart", Label("C58"), func(ctx SpecContext) {
		metadata, keys := document(one, w.now), document(one, w.now)
		keys.Kind, keys.Body = oauth.KeySetDocument, []byte(`{"keys":[]}`)
		save(ctx, metadata, keys)
		Expect(documents.ClientDocument(ctx, metadata.Digest())).To(Equal(metadata))
		Expect(documents.ClientDocument(ctx, keys.Digest())).To(Equal(keys))
	})

	It("keeps the version that was checked last, also when an earlier one is saved after it",
		Label("C58", "I22"), func(ctx SpecContext) {
			newer, older := document(one, w.now.Add(time.Minute)), document(one, w.now)
			older.Body = []byte(`{"old":true}`)
			save(ctx, newer, older)
			Expect(documents.ClientDocument(ctx, newer.Digest())).To(Equal(newer))
		})

	It("keeps that a document was withdrawn, and finds none that it has never had",
		Label("C57"), func(ctx SpecContext) {
			withdrawn := oauth.ClientDocument{
				Kind:       oauth.KeySetDocument,
				URL:        one,
				CheckedAt:  w.now.Add(time.Minute),
				FreshUntil: w.now.Add(time.Minute),
			}
			good := document(one, w.now)
			good.Kind = oauth.KeySetDocument
			save(ctx, good, withdrawn, good)
			found, err := documents.ClientDocument(ctx, good.Digest())
			Expect(err).NotTo(HaveOccurred())
			Expect(found.Withdrawn()).To(BeTrue())
			Expect(w.deleteExpired(ctx, withdrawn.CheckedAt.Add(30*24*time.Hour-time.Millisecond))).To(BeZero())
			Expect(w.deleteExpired(ctx, withdrawn.CheckedAt.Add(30*24*time.Hour))).To(Equal(1))
			_, err = documents.ClientDocument(ctx, document(other, w.now).Digest())
			Expect(err).To(MatchError(oauth.ErrNotFound))
		})

	It("keeps the owner of a document, and deletes the earliest of an owner with too many",
		Label("C58", "C54"), func(ctx SpecContext) {
			owned := func(i int, owner byte) oauth.ClientDocument {
				d := document(fmt.Sprintf("https://client.example/%d/%02d", owner, i),
					w.now.Add(time.Duration(i)*time.Second))
				d.Owner = oauth.Fingerprint{owner}
				return d
			}
			save(ctx, owned(0, 1))
			renewed := owned(0, 1)
			renewed.Owner, renewed.CheckedAt = oauth.Fingerprint{}, w.now.Add(time.Minute)
			save(ctx, renewed)
			found, err := documents.ClientDocument(ctx, renewed.Digest())
			Expect(err).NotTo(HaveOccurred())
			Expect(found.Owner).To(Equal(oauth.Fingerprint{1}))
			for i := range oauth.MaxClientDocumentsPerOwner + 1 {
				save(ctx, owned(i, 2))
			}
			all, err := documents.ClientDocuments(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(all).To(HaveLen(oauth.MaxClientDocumentsPerOwner + 1))
			_, err = documents.ClientDocument(ctx, owned(0, 2).Digest())
			Expect(err).To(MatchError(oauth.ErrNotFound))
		})

	It("deletes a document exactly when it may not serve any more",
		Label("C57", "C56", "H6", "I20"), func(ctx SpecContext) {
			metadata, keys := document(one, w.now), document(other, w.now)
			keys.Kind = oauth.KeySetDocument
			save(ctx, metadata, keys)
			Expect(w.deleteExpired(ctx, keys.FreshUntil.Add(time.Hour-time.Millisecond))).To(BeZero())
			Expect(w.deleteExpired(ctx, keys.FreshUntil.Add(time.Hour))).To(Equal(1))
			Expect(w.deleteExpired(ctx, w.now.Add(30*24*time.Hour-time.Millisecond))).To(BeZero())
			Expect(documents.ClientDocuments(ctx)).To(ConsistOf(metadata))
			Expect(w.deleteExpired(ctx, w.now.Add(30*24*time.Hour))).To(Equal(1))
			Expect(documents.ClientDocuments(ctx)).To(BeEmpty())
		})

	It("keeps the newest of 16 simultaneous versions", Label("C58", "I22"), func(ctx SpecContext) {
		version := func(i int) oauth.ClientDocument { return document(one, w.now.Add(time.Duration(i)*time.Second)) }
		for first := 0; first < 160; first += 16 {
			Expect(concurrently(16, func(i int) error {
				return documents.SaveClientDocument(ctx, version(first+15-i))
			})).To(HaveEach(Succeed()))
			Expect(documents.ClientDocuments(ctx)).To(ConsistOf(version(first + 15)))
		}
	})

	It("deletes the documents that were checked earliest when there are too many",
		Label("C58", "C54"), func(ctx SpecContext) {
			at := func(i int) oauth.ClientDocument {
				return document(fmt.Sprintf("https://client.example/%05d", i),
					w.now.Add(time.Duration(oauth.MaxClientDocuments-i)*time.Second))
			}
			const atOnce = 8
			Expect(concurrently(atOnce, func(first int) error {
				for i := first; i < oauth.MaxClientDocuments; i += atOnce {
					if err := documents.SaveClientDocument(ctx, at(i)); err != nil {
						return err
					}
				}
				return nil
			})).To(HaveEach(Succeed()))
			save(ctx, document(one, w.now.Add(time.Hour*24)))
			all, err := documents.ClientDocuments(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(all).To(HaveLen(oauth.MaxClientDocuments))
			_, err = documents.ClientDocument(ctx, at(oauth.MaxClientDocuments-1).Digest())
			Expect(err).To(MatchError(oauth.ErrNotFound))
		})
}

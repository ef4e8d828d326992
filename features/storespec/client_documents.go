package storespec

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// KeepingDocuments adds the specs of client.DocumentStore, for a store that implements it.
func KeepingDocuments(open func() oauth.Store) {
	apart(func() { keepingDocuments(open) })
}

func keepingDocuments(open func() oauth.Store) {
	w := &world{}
	var documents client.DocumentStore
	BeforeEach(func() {
		*w = newWorld(open())
		documents = w.store.Store.(client.DocumentStore)
	})
	document := func(url string, checkedAt time.Time) client.Document {
		return client.Document{URL: url, Body: []byte(`{"client_id":"` + url + `"}`), CheckedAt: checkedAt}
	}
	save := func(ctx context.Context, saved ...client.Document) {
		GinkgoHelper()
		for _, d := range saved {
			Expect(documents.SaveClientDocument(ctx, d)).To(Succeed())
		}
	}
	missing := func(ctx context.Context, url string) {
		GinkgoHelper()
		Expect(documents.ClientDocument(ctx, url)).Error().To(MatchError(oauth.ErrNotFound))
	}
	const one, other = "https://one.example/c", "https://other.example/c"

	It("returns a document as it was saved, and replaces it by another version", Label("C58"), func(ctx SpecContext) {
		first, second := document(one, w.now), document(one, w.now.Add(time.Minute))
		second.Body = []byte(strings.Repeat("x", 5<<10))
		save(ctx, first, document(other, w.now))
		Expect(documents.ClientDocument(ctx, one)).To(Equal(first))
		save(ctx, second, second)
		Expect(documents.ClientDocument(ctx, one)).To(Equal(second))
		Expect(documents.ClientDocument(ctx, other)).To(Equal(document(other, w.now)))
	})

	It("deletes a document, and finds none that it does not have", Label("C57"), func(ctx SpecContext) {
		save(ctx, document(one, w.now), document(other, w.now))
		Expect(documents.DeleteClientDocument(ctx, one)).To(Succeed())
		Expect(documents.DeleteClientDocument(ctx, one)).To(Succeed())
		missing(ctx, one)
		Expect(documents.ClientDocument(ctx, other)).To(Equal(document(other, w.now)))
	})

	It("deletes a document exactly when it may not serve any more", Label("C57", "H6", "I20"), func(ctx SpecContext) {
		save(ctx, document(one, w.now))
		Expect(w.deleteExpired(ctx, w.now.Add(30*24*time.Hour-time.Millisecond))).To(BeZero())
		Expect(w.deleteExpired(ctx, w.now.Add(30*24*time.Hour))).To(Equal(1))
		missing(ctx, one)
	})

	It("keeps one of 16 simultaneous versions", Label("C58", "I22"), func(ctx SpecContext) {
		version := func(i int) client.Document { return document(one, w.now.Add(time.Duration(i)*time.Second)) }
		Expect(concurrently(16, func(i int) error {
			return documents.SaveClientDocument(ctx, version(i))
		})).To(HaveEach(Succeed()))
		kept, err := documents.ClientDocument(ctx, one)
		Expect(err).NotTo(HaveOccurred())
		Expect(kept).To(Equal(version(int(kept.CheckedAt.Sub(w.now) / time.Second))))
	})

	It("deletes the documents that were checked earliest when there are too many",
		Label("C58"), func(ctx SpecContext) {
			at := func(i int) client.Document {
				return document(fmt.Sprintf("https://client.example/%05d", i),
					w.now.Add(time.Duration(client.MaxDocuments-i)*time.Second))
			}
			const atOnce = 8
			Expect(concurrently(atOnce, func(first int) error {
				for i := first; i < client.MaxDocuments; i += atOnce {
					if err := documents.SaveClientDocument(ctx, at(i)); err != nil {
						return err
					}
				}
				return nil
			})).To(HaveEach(Succeed()))
			last := at(client.MaxDocuments - 1)
			Expect(documents.ClientDocument(ctx, last.URL)).To(Equal(last))
			save(ctx, document(one, w.now.Add(time.Hour*24)))
			missing(ctx, last.URL)
			Expect(documents.ClientDocument(ctx, at(client.MaxDocuments-2).URL)).
				To(Equal(at(client.MaxDocuments - 2)))
		})
}

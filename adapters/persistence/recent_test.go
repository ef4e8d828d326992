package persistence

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

// races is how often it is tried; a longer run is asked for by the environment.
func races() int {
	if asked, err := strconv.Atoi(os.Getenv("RACES")); err == nil {
		return asked
	}
	return 500
}

var _ = Describe("Remembering what the guard has read", Label("E9", "I22", "G7"), func() {
	ended := func(ctx context.Context, s *Store, secret oauth.Digest) bool {
		GinkgoHelper()
		grant, err := s.Grant(ctx, secret)
		Expect(err).NotTo(HaveOccurred())
		snapshot, _ := grant.Snapshot()
		return snapshot.State == "ended"
	}
	end := func(ctx context.Context, s *Store, secret oauth.Digest) {
		GinkgoHelper()
		Expect(s.UpdateGrant(ctx, secret, func(g *oauth.AccessGrant) error {
			g.End(oauth.EndedByHost, time.Now())
			return nil
		})).To(Succeed())
	}

	It("reads nothing twice while nobody writes", func(ctx SpecContext) {
		store := openIn(GinkgoT().TempDir())
		Expect(store.AddGrant(ctx, aGrant("g", 1), nil)).To(Succeed())
		reads := 0
		for range 3 {
			_, err := store.recent.read(ctx, digest(0), func() (foundRow, error) {
				reads++
				return store.engine.finds(store.reader.WithContext(ctx), digest(0))
			})
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(reads).To(Equal(1))
	})

	It("does not remember that there was nothing", func(ctx SpecContext) {
		store := openIn(GinkgoT().TempDir())
		_, err := store.Grant(ctx, digest(0))
		Expect(err).To(MatchError(oauth.ErrNotFound))
		Expect(store.recent.rows.Len()).To(BeZero())
	})

	It("hands out grants that do not share what is changed in them", func(ctx SpecContext) {
		store := openIn(GinkgoT().TempDir())
		Expect(store.AddGrant(ctx, aGrant("g", 1), nil)).To(Succeed())
		first, err := store.Grant(ctx, digest(0))
		Expect(err).NotTo(HaveOccurred())
		first.End(oauth.EndedByHost, time.Now())
		Expect(ended(ctx, store, digest(0))).To(BeFalse())
	})

	It("remembers nothing of a file that another one has replaced, nor of one that is gone", Label("N14"), func(ctx SpecContext) {
		directory := GinkgoT().TempDir()
		store, other := openIn(directory), openIn(GinkgoT().TempDir())
		file := filepath.Join(directory, "oauth.db")
		Expect(store.AddGrant(ctx, aGrant("g", 1), nil)).To(Succeed())
		Expect(ended(ctx, store, digest(0))).To(BeFalse())
		Expect(other.AddGrant(ctx, aGrant("g", 1), nil)).To(Succeed())
		end(ctx, other, digest(0))
		Expect(other.Close()).To(Succeed())
		Expect(os.Rename(file, file+".away")).To(Succeed())
		_, err := store.Grant(ctx, digest(0))
		Expect(err).To(unavailable())
		Expect(os.Remove(file + "-wal")).To(Succeed())
		Expect(os.Rename(filepath.Join(filepath.Dir(other.secretFile), "oauth.db"), file)).To(Succeed())
		Expect(ended(ctx, store, digest(0))).To(BeTrue())
	})

	for where, open := range map[string]func() (mine, theirs *Store){
		"in one process": func() (*Store, *Store) {
			store := openIn(GinkgoT().TempDir())
			return store, store
		},
		"by another process on the same file": func() (*Store, *Store) {
			directory := GinkgoT().TempDir()
			return openIn(directory), openIn(directory)
		},
	} {
		It("never shows a grant alive after its end was answered, "+where, func(ctx SpecContext) {
			mine, theirs := open()
			for i := range races() {
				secret := digest(0)
				Expect(theirs.AddGrant(ctx, aGrant("g"+strconv.Itoa(i), 1), nil)).To(Succeed())
				var answered atomic.Bool
				var users sync.WaitGroup
				for range 3 {
					users.Go(func() {
						defer GinkgoRecover()
						for last := false; !last; {
							last = answered.Load()
							Expect(ended(ctx, mine, secret) || !last).To(BeTrue(), "used after its end was answered")
						}
					})
				}
				end(ctx, theirs, secret)
				answered.Store(true)
				users.Wait()
				Expect(theirs.writer.Exec("DELETE FROM grants").Error).To(Succeed())
			}
		}, SpecTimeout(30*time.Minute))
	}
})

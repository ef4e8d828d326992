package persistence

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/storespec"
)

var _ = Describe("Two stores on one SQLite file", Label("I22"), func() {
	open := func() oauth.Store {
		directory := GinkgoT().TempDir()
		copyMigrated(directory)
		return &alternating{stores: []oauth.Store{openIn(directory), openIn(directory)}}
	}
	storespec.Contract(open)
	storespec.RecordingUses(open)

	It("generate one secret when many open a new file at once", func() {
		directory := GinkgoT().TempDir()
		secrets := make([]string, 8)
		var opening sync.WaitGroup
		for i := range secrets {
			opening.Go(func() {
				defer GinkgoRecover()
				kept, err := openIn(directory).Secrets()
				Expect(err).NotTo(HaveOccurred())
				secrets[i] = string(kept[0])
			})
		}
		opening.Wait()
		Expect(secrets).To(HaveEach(secrets[0]))
	})

	It("give up waiting for each other when the context ends", Label("N14", "D30"), func(ctx SpecContext) {
		directory := GinkgoT().TempDir()
		one, other := openIn(directory), openIn(directory)
		Expect(keep(ctx, one, aGrant("g"))).To(Succeed())
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		Expect(storespec.On(one).UpdateGrant(ctx, "g", func(*oauth.AccessGrant) error {
			err := storespec.On(other).UpdateGrant(short, "g", func(*oauth.AccessGrant) error { return nil })
			Expect(err).To(And(MatchError(context.DeadlineExceeded), Not(MatchError(oauth.ErrNotFound))))
			_, err = storespec.On(other).Grant(ctx, "g")
			return err
		})).To(Succeed())
	})
})

// alternating asks another store at every call.
type alternating struct {
	stores []oauth.Store
	calls  atomic.Uint32
}

func (a *alternating) next() oauth.Store { return a.stores[int(a.calls.Add(1))%len(a.stores)] }

func (a *alternating) Find(ctx context.Context, of oauth.Selection) (oauth.Authorizations, error) {
	return a.next().Find(ctx, of)
}

func (a *alternating) Change(ctx context.Context, of oauth.Selection, change func(*oauth.Authorizations) error) error {
	return a.next().Change(ctx, of, change)
}

func (a *alternating) RecordUse(ctx context.Context, uses map[string]oauth.Use) error {
	return a.next().(oauth.UseRecorder).RecordUse(ctx, uses)
}

func (a *alternating) UseOnce(ctx context.Context, assertion oauth.Digest, forgetAfter time.Time) error {
	return a.next().UseOnce(ctx, assertion, forgetAfter)
}

func (a *alternating) DeleteExpired(ctx context.Context, now time.Time) (int, error) {
	return a.next().DeleteExpired(ctx, now)
}

package persistence

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/engines"
	"github.com/pasteport/pasteport/features/storespec"
	"github.com/pasteport/pasteport/features/suite"
)

func TestPersistence(t *testing.T) {
	suite.RunParallel(t, "Persistence", engines.Share)
}

var _ = Describe("A store in a SQLite file", func() {
	storespec.Contract(func() oauth.Store { return openFresh() }, reopen)
	storespec.RecordingUses(func() oauth.Store { return openFresh() })
	storespec.WatchingEnds(func() oauth.Store { return openFresh() })
	storespec.Listing(func() oauth.Store { return openFresh() })
	storespec.KeepingDocuments(func() oauth.Store { return openFresh() })
})

var then = time.UnixMilli(1_770_091_506_789).UTC()

// openFresh opens a new database. Most specs use a copy of a migrated file, because migrations take
// longer than the rest of such a spec.
func openFresh() *Store {
	GinkgoHelper()
	directory := GinkgoT().TempDir()
	copyMigrated(directory)
	return openIn(directory)
}

func copyMigrated(directory string) {
	GinkgoHelper()
	content, err := migratedFile()
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(directory, "oauth.db"), content, 0o600)).To(Succeed())
}

// migratedFile returns a file with the tables of today and no rows.
var migratedFile = sync.OnceValues(func() ([]byte, error) {
	directory, err := os.MkdirTemp("", "migrated")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(directory) }()
	file := filepath.Join(directory, "oauth.db")
	if _, err := Migrate(file, ServerOptions{}); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

func openIn(directory string) *Store {
	store, err := OpenSQLite(filepath.Join(directory, "oauth.db"))
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	DeferCleanup(func() { _ = store.Close() }) // the spec may have closed it
	return store
}

func reopen(store oauth.Store) oauth.Store {
	former := store.(*Store)
	Expect(former.Close()).To(Succeed())
	return openIn(filepath.Dir(former.secretFile))
}

var absoluteEnd = then.Add(24 * time.Hour)

func aGrant(id string) *oauth.AccessGrant {
	return oauth.RestoreGrant(oauth.GrantSnapshot{
		ConsentSnapshot: oauth.ConsentSnapshot{ID: id, State: "active", CreatedAt: then},
		IdleEnd:         then.Add(time.Hour),
		AbsoluteEnd:     absoluteEnd,
	})
}

func aCode(id string) *oauth.AuthorizationCode {
	return oauth.RestoreCode(oauth.CodeSnapshot{
		ConsentSnapshot: oauth.ConsentSnapshot{ID: id, State: oauth.IssuedCode, CreatedAt: then},
		ExpiresAt:       then.Add(time.Minute),
	})
}

// keep stores a grant as a redemption does, without its code.
func keep(ctx context.Context, store *Store, grant *oauth.AccessGrant) error {
	return store.change(ctx, func(tx *gorm.DB) error {
		return failed("adding a grant", grants.write(tx, nil, []oauth.GrantSnapshot{grant.Snapshot()}))
	})
}

// addAll adds rows to a table in one transaction.
func addAll[R any](ctx context.Context, store *Store, to table[R], rows []R) error {
	return store.transaction(ctx, func(tx *gorm.DB) error { return to.write(tx, nil, rows) })
}

func digest(i int) (digest oauth.Digest) {
	binary.BigEndian.PutUint32(digest[:], uint32(i))
	return digest
}

func ended(ctx context.Context, s *Store, id string) bool {
	GinkgoHelper()
	found, err := storespec.On(s).Grant(ctx, id)
	Expect(err).NotTo(HaveOccurred())
	return found.EndReason() != ""
}

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

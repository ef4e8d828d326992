package persistence

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/engines"
	"github.com/pasteport/pasteport/features/storespec"
	"github.com/pasteport/pasteport/features/suite"
)

func TestPersistence(t *testing.T) {
	roles := map[string]func(file string){endVariable: endGrantIn, endsVariable: endGrantsIn, addVariable: addGrantsTo}
	for variable, role := range roles {
		if file := os.Getenv(variable); file != "" {
			role(file)
			os.Exit(0) // without the verdict on a suite that did not run
		}
	}
	suite.RunParallel(t, "Persistence", engines.Share)
}

var _ = Describe("A store in a SQLite file", func() {
	storespec.Contract(func() oauth.Store { return openFresh() }, reopen)
	storespec.WatchingEnds(func() oauth.Store { return openFresh() })
	storespec.Counting(func() oauth.Store { return openFresh() })
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
	if _, err := MigrateSQLite(file); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

func openIn(directory string) *Store {
	store, err := OpenSQLite(filepath.Join(directory, "oauth.db"))
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		defer store.Close()
		expectTrueCache(store)
	})
	return store
}

// expectTrueCache compares the cached grants with the file, after anything that a spec has done.
func expectTrueCache(s *Store) {
	var ids []string
	// the spec has closed or broken the file
	if err := s.reader.Raw("SELECT id FROM grants").Scan(&ids).Error; err != nil {
		return
	}
	for _, id := range ids {
		if entry := cached(s, id); entry != nil {
			found, err := s.engine.grant(s.reader.WithContext(context.Background()), id)
			Expect(err).NotTo(HaveOccurred())
			Expect(entry.restore()).To(Equal(found.restore()), "a caller has changed what others get copies of")
			Expect(entry.stored).To(Equal(found.stored))
		}
	}
	for _, id := range []string{"g", "full", "bare", "refused"} { // grants that the spec may have written and deleted
		if !slices.Contains(ids, id) {
			Expect(cached(s, id)).To(BeNil())
		}
	}
}

func reopen(store oauth.Store) oauth.Store {
	former := store.(*Store)
	Expect(former.Close()).To(Succeed())
	return openIn(filepath.Dir(former.secretFile.Path()))
}

var absoluteEnd = then.Add(24 * time.Hour)

func aGrant(id string) *oauth.AccessGrant {
	return oauth.RestoreGrant(oauth.GrantSnapshot{
		ID:          id,
		State:       "active",
		CreatedAt:   then,
		IdleEnd:     then.Add(time.Hour),
		AbsoluteEnd: absoluteEnd,
	})
}

func aCode(id string) *oauth.AuthorizationCode {
	return oauth.RestoreCode(oauth.CodeSnapshot{
		ID:        id,
		State:     oauth.IssuedCode,
		CreatedAt: then,
		ExpiresAt: then.Add(time.Minute),
	})
}

// keep stores a grant as a redemption does, without its code.
func keep(ctx context.Context, store *Store, grant *oauth.AccessGrant) error {
	return store.change(ctx, func(tx *sqlite.Tx) error { return addGrant(tx, grant) })
}

func digest(i int) (digest oauth.Digest) {
	binary.BigEndian.PutUint32(digest[:], uint32(i))
	return digest
}

// breakCommit does what SQLite refuses only at the end.
func breakCommit(tx *gorm.DB) error {
	return errors.Join(
		tx.Exec("CREATE TABLE children (parent TEXT REFERENCES grants (id) DEFERRABLE INITIALLY DEFERRED)").Error,
		tx.Exec("INSERT INTO children VALUES ('missing')").Error,
	)
}

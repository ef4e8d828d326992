package persistence

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
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

// openFresh opens a new database. Most specs use a copy of a migrated file, because migrations take longer than the rest of such a spec.
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
	var secrets [][]byte
	if err := s.reader.Raw("SELECT digest FROM secrets").Scan(&secrets).Error; err != nil { // the spec has closed or broken the file
		return
	}
	inFile := map[oauth.Digest]bool{}
	for _, secret := range secrets {
		inFile[oauth.Digest(secret)] = true
		if entry := cached(s, oauth.Digest(secret)); entry != nil {
			found, err := s.engine.lookup(s.reader.WithContext(context.Background()), oauth.Digest(secret))
			Expect(err).NotTo(HaveOccurred())
			Expect(entry.restore()).To(Equal(found.restore()), "a caller has changed what others get copies of")
			Expect(entry.grant).To(Equal(found.grant))
			Expect(entry.secret).To(Equal(found.secret))
		}
	}
	for i := range 10 { // secrets that the spec may have written and deleted
		if secret := digest(i); !inFile[secret] {
			Expect(cached(s, secret)).To(BeNil())
		}
	}
}

func reopen(store oauth.Store) oauth.Store {
	former := store.(*Store)
	Expect(former.Close()).To(Succeed())
	return openIn(filepath.Dir(former.secretFile.Path()))
}

var absoluteEnd = then.Add(24 * time.Hour)

// aGrant has as many refresh tokens as asked, as an earlier version has kept them; their digests are digest(0), digest(1) and so on.
func aGrant(id string, secrets int) *oauth.AccessGrant {
	rows := make([]oauth.SecretSnapshot, 0, secrets)
	for i := range secrets {
		digest := digest(i)
		rows = append(rows, oauth.SecretSnapshot{Digest: digest[:], Grant: id, Kind: string(oauth.RefreshTokenSecret), ForgetAfter: absoluteEnd})
	}
	return oauth.RestoreGrant(oauth.GrantSnapshot{ID: id, State: "active", CreatedAt: then, IdleEnd: then.Add(time.Hour), AbsoluteEnd: absoluteEnd}, rows...)
}

// aCode has digest(value).
func aCode(id string, value int) *oauth.AuthorizationCode {
	digest := digest(value)
	return oauth.RestoreCode(oauth.CodeSnapshot{ID: id, Digest: digest[:], State: oauth.IssuedCode, CreatedAt: then, ExpiresAt: then.Add(time.Minute)})
}

// keep stores a grant as a redemption does, without its code.
func keep(ctx context.Context, store *Store, grant *oauth.AccessGrant) error {
	return store.change(ctx, func(tx *sqlite.Tx) error { return addGrant(tx, grant) })
}

// aFamily is a grant with refresh tokens of which each has replaced the one before; their digests begin with digest(first).
func aFamily(id string, first, tokens int) *oauth.AccessGrant {
	var rows []oauth.SecretSnapshot
	var newest []byte
	for i := range tokens {
		digest := digest(first + i)
		rows = append(rows, oauth.SecretSnapshot{Digest: digest[:], Grant: id, Kind: string(oauth.RefreshTokenSecret), Predecessor: newest})
		newest = digest[:]
	}
	return oauth.RestoreGrant(oauth.GrantSnapshot{ID: id, State: "active", CreatedAt: then, IdleEnd: then.Add(time.Hour), AbsoluteEnd: absoluteEnd, RefreshDigest: newest}, rows...)
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

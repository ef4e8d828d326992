package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/features/suite"
)

func TestSQLite(t *testing.T) {
	suite.RunParallel(t, "SQLite")
}

const tables = `CREATE TABLE IF NOT EXISTS grants (id TEXT NOT NULL PRIMARY KEY, ended INTEGER NOT NULL);
	CREATE TABLE IF NOT EXISTS counts (name TEXT NOT NULL PRIMARY KEY, taken INTEGER NOT NULL);
	CREATE TABLE IF NOT EXISTS holds (number INTEGER PRIMARY KEY)`

func openIn(directory string) *Database {
	GinkgoHelper()
	path := filepath.Join(directory, "oauth.db")
	// SQLite loses its locks on a file that is opened and closed here.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if !errors.Is(err, os.ErrExist) {
		Expect(err).NotTo(HaveOccurred())
		Expect(file.Close()).To(Succeed())
	}
	d, err := Open(path, WAL)
	Expect(err).NotTo(HaveOccurred())
	Expect(d.Writer.Exec(tables).Error).To(Succeed())
	Expect(d.Writer.Exec("PRAGMA foreign_keys = 1").Error).To(Succeed())
	DeferCleanup(func() { _ = d.Close() }) // the spec may have closed it
	return d
}

func add(ctx context.Context, d *Database, id string) error {
	return d.Write(ctx, BusyTimeout, func(tx *gorm.DB) error {
		return tx.Exec("INSERT INTO grants SELECT ?, FALSE", id).Error
	})
}

// endIn reports whether the grant had not ended before.
func endIn(tx *gorm.DB, id string) (ends bool, err error) {
	done := tx.Exec("UPDATE grants SET ended = TRUE WHERE id = ? AND NOT ended", id)
	return done.RowsAffected == 1, done.Error
}

// holding is a write that lasts.
type holding struct {
	release func()
	done    chan struct{}
}

func (h *holding) wait() { <-h.done }

// hold writes without the context of the spec, which ends before.
func hold(ctx context.Context, d *Database) *holding {
	GinkgoHelper()
	begun, goOn := make(chan struct{}), make(chan struct{})
	h := &holding{sync.OnceFunc(func() { close(goOn) }), make(chan struct{})}
	go func() {
		defer GinkgoRecover()
		defer close(h.done)
		Expect(d.Write(context.WithoutCancel(ctx), BusyTimeout, func(tx *gorm.DB) error {
			close(begun)
			<-goOn
			return tx.Exec("INSERT INTO holds DEFAULT VALUES").Error
		})).To(Succeed())
	}()
	DeferCleanup(func() { h.release(); h.wait() })
	Eventually(begun).WithContext(ctx).WithTimeout(BusyTimeout).Should(BeClosed())
	return h
}

var _ = Describe("Opening a SQLite file", func() {
	var directory string
	BeforeEach(func() { directory = GinkgoT().TempDir() })

	It("connects one writer and readers that wait and survive a power failure",
		Label("H5"), func() {
			d := openIn(directory)
			for db, connections := range map[*gorm.DB]int{d.Writer: 1, d.Reader: readers} {
				Expect(pragma(db, "journal_mode")).To(Equal("wal"))
				Expect(pragma(db, "synchronous")).To(Equal("2"))
				Expect(pragma(db, "busy_timeout")).To(Equal("5000"))
				pool, err := db.DB()
				Expect(err).NotTo(HaveOccurred())
				Expect(pool.Stats().MaxOpenConnections).To(Equal(connections))
			}
			Expect(pragma(d.Reader, "cache_size")).To(Equal("50"))
			Expect(d.Reader.Exec("DELETE FROM grants").Error).To(MatchError(ContainSubstring("readonly")))
		})

	It("leaves the journal mode when it opens a file as it is", func() {
		file := filepath.Join(directory, "oauth.db")
		Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
		d, err := Open(file)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(d.Close)
		Expect(pragma(d.Reader, "journal_mode")).To(Equal("delete"))
	})
})

func pragma(db *gorm.DB, name string) (value string) {
	GinkgoHelper()
	Expect(db.Raw("PRAGMA " + name).Scan(&value).Error).To(Succeed())
	return value
}

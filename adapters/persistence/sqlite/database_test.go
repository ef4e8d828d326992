package sqlite

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"gorm.io/gorm"
)

var _ = Describe("Opening a SQLite file", func() {
	var directory string
	BeforeEach(func() { directory = GinkgoT().TempDir() })

	It("connects one writer and readers that wait, survive a power failure and check foreign keys",
		Label("H5"), func() {
			d := openIn(directory)
			for db, connections := range map[*gorm.DB]int{d.Writer: 1, d.Reader: readers(runtime.GOMAXPROCS(0))} {
				Expect(pragma(db, "journal_mode")).To(Equal("wal"))
				Expect(pragma(db, "synchronous")).To(Equal("2"))
				Expect(pragma(db, "busy_timeout")).To(Equal("5000"))
				Expect(pragma(db, "foreign_keys")).To(Equal("1"))
				pool, err := db.DB()
				Expect(err).NotTo(HaveOccurred())
				Expect(pool.Stats().MaxOpenConnections).To(Equal(connections))
			}
			Expect(pragma(d.Reader, "cache_size")).To(Equal("50"))
			Expect(d.Reader.Exec("DELETE FROM grants").Error).To(MatchError(ContainSubstring("readonly")))
		})

	It("connects two more readers than there are processors, and four at most", func() {
		Expect([]int{readers(1), readers(2), readers(64)}).To(Equal([]int{3, 4, 4}))
	})

	It("refuses when SQLite does not keep to the settings", func() {
		d := openIn(directory)
		former := pragmas
		DeferCleanup(func() { pragmas = former })
		pragmas = append(slices.Clone(former), struct{ name, value string }{"page_size", "3"})
		Expect(d.CheckPragmas()).To(MatchError(
			ContainSubstring("SQLite keeps page_size at 4096 instead of 3: put the file on a local disk")))
	})

	It("leaves the journal mode when it opens a file as it is", func() {
		file := filepath.Join(directory, "oauth.db")
		Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
		d, err := OpenAsIs(file)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(d.Disconnect)
		Expect(pragma(d.Reader, "journal_mode")).To(Equal("delete"))
	})

	It("explains that the file cannot be written", func() {
		openIn(directory)
		file := filepath.Join(directory, "oauth.db")
		db, err := connect(connector{file, "file:" + file + "?mode=ro"}, 1)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(disconnect, db)
		err = db.Exec("DELETE FROM grants").Error
		Expect(Explain(err)).
			To(MatchError(And(ContainSubstring("has to be able to write the file"), ContainSubstring("readonly"))))
	})
})

func pragma(db *gorm.DB, name string) (value string) {
	GinkgoHelper()
	Expect(db.Raw("PRAGMA " + name).Scan(&value).Error).To(Succeed())
	return value
}

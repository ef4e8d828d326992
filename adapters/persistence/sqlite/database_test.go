package sqlite

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"gorm.io/gorm"
)

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

	It("explains that the file cannot be written", func() {
		err := openIn(directory).Reader.Exec("DELETE FROM grants").Error
		Expect(Explain(err)).
			To(MatchError(And(ContainSubstring("has to be able to write the file"), ContainSubstring("readonly"))))
	})
})

func pragma(db *gorm.DB, name string) (value string) {
	GinkgoHelper()
	Expect(db.Raw("PRAGMA " + name).Scan(&value).Error).To(Succeed())
	return value
}

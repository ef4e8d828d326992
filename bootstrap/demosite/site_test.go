package demosite

import (
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Opening the content database", func() {
	It("creates files that other users cannot read", func() {
		file := newFile()
		openSite(file)
		for _, suffix := range []string{"", "-wal", "-shm"} {
			status, err := os.Stat(file + suffix)
			Expect(err).NotTo(HaveOccurred())
			Expect(status.Mode().Perm()).To(BeEquivalentTo(0o600), suffix)
		}
	})

	It("uses WAL, waits for locks and checks foreign keys", func() {
		site := openSite(newFile())
		for pragma, expected := range map[string]string{
			"journal_mode": "wal",
			"busy_timeout": "5000",
			"foreign_keys": "1",
			"synchronous":  "2",
		} {
			var actual string
			Expect(site.db.Raw("PRAGMA " + pragma).Scan(&actual).Error).To(Succeed())
			Expect(actual).To(Equal(expected), pragma)
		}
	})

	It("accepts any file name", func() {
		folder := GinkgoT().TempDir()
		GinkgoT().Chdir(folder)
		openSite("my site? 100% #1.db")
		openSite("./here.db")
		Expect(filepath.Glob(filepath.Join(folder, "*.db"))).To(ConsistOf(
			filepath.Join(folder, "my site? 100% #1.db"), filepath.Join(folder, "here.db")))
	})

	It("keeps all data across a restart", func(ctx SpecContext) {
		file := newFile()
		site := openSite(file)
		token, err := site.IssueToken(ctx, "ada", Author)
		Expect(err).NotTo(HaveOccurred())
		eve := visit(ctx, site, "eve", Editor)
		eve.must(ctx, "create_article", arguments{"title": "News", "body": "text"})
		published := eve.must(ctx, "publish_article", arguments{"slug": "news"})
		eve.must(ctx, "archive_article", arguments{"slug": "house-style"})
		eve.must(ctx, "delete_article", arguments{"slug": "house-style"})
		Expect(site.Close()).To(Succeed())

		again := openSite(file)
		eve = visit(ctx, again, "eve", Editor)
		Expect(slugsOf(eve.list(ctx, nil).Articles)).To(Equal([]string{"news", "welcome-to-the-demo-site"}))
		Expect(eve.must(ctx, "get_article", arguments{"slug": "news"})).To(Equal(published))
		Expect(again.VerifyBearer(ctx, token)).To(HaveField("Subject", "ada"))
	})

	It("shares the file with a second process", func(ctx SpecContext) {
		file := newFile()
		one, other := openSite(file), openSite(file)
		article := place(ctx, one, "ada", Published)
		Expect(visit(ctx, other, "rob", Reader).must(ctx, "get_article", arguments{"slug": article.Slug}).Title).
			To(Equal(article.Title))
	})

	It("applies exactly one of two conflicting changes, even from two processes", func(ctx SpecContext) {
		file := newFile()
		one, other := openSite(file), openSite(file)
		eve := actor{"eve", Editor}
		slug := place(ctx, one, "ada", Draft).Slug
		inFirst, inSecond, first := make(chan bool), make(chan bool), make(chan error)
		go func() {
			_, err := one.change(ctx, eve, slug, func(article *Article) error {
				close(inFirst)
				select {
				case <-inSecond:
				case <-time.After(50 * time.Millisecond): // the second transaction waits, as it must
				}
				return article.Publish(one.now())
			})
			first <- err
		}()
		<-inFirst
		_, err := other.change(ctx, eve, slug, func(article *Article) error {
			close(inSecond)
			return article.Publish(other.now())
		})
		Expect(err).To(MatchError(ContainSubstring("published already")))
		Expect(<-first).NotTo(HaveOccurred())
	})

	It("refuses a file with migrations of a newer version", func() {
		file := newFile()
		site := openSite(file)
		Expect(site.db.Exec("INSERT INTO migrations (id) VALUES ('9999 from the future')").Error).To(Succeed())
		Expect(site.Close()).To(Succeed())
		_, err := Open(file)
		Expect(err).To(MatchError(ContainSubstring("migration")))
	})

	DescribeTable("reports the cause of a failure",
		func(prepare func(folder string) string, why string) {
			file := prepare(GinkgoT().TempDir())
			_, err := Open(file)
			Expect(err).To(MatchError(And(ContainSubstring(file), ContainSubstring(why))))
		},
		Entry("when the folder does not exist", func(folder string) string {
			return filepath.Join(folder, "missing", "site.db")
		}, "folder must exist and be writable"),
		Entry("when the folder cannot be written", func(folder string) string {
			protect(folder)
			return filepath.Join(folder, "site.db")
		}, "folder must exist and be writable"),
		Entry("when the folder of an existing file cannot be written", func(folder string) string {
			file := filepath.Join(folder, "site.db")
			Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
			protect(folder)
			return file
		}, "folder must exist and be writable"),
		Entry("when the file is a folder", func(folder string) string { return folder }, "is a directory"),
		Entry("when the file is not a database", func(folder string) string {
			file := filepath.Join(folder, "site.db")
			Expect(os.WriteFile(file, []byte("certainly not a database, but long enough to be looked at"), 0o600)).
				To(Succeed())
			return file
		}, "not a database"),
	)
})

func protect(folder string) {
	GinkgoHelper()
	if os.Geteuid() == 0 {
		Skip("root may write everywhere")
	}
	Expect(os.Chmod(folder, 0o500)).To(Succeed())
	DeferCleanup(os.Chmod, folder, os.FileMode(0o700))
}

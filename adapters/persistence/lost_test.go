package persistence

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
)

var _ = Describe("A SQLite file that is lost beside its server secret", Label("J2", "H7"), func() {
	var file string
	BeforeEach(func() { file = filepath.Join(GinkgoT().TempDir(), "oauth.db") })
	begin := func() {
		GinkgoHelper()
		store := openIn(filepath.Dir(file))
		Expect(keep(GinkgoT().Context(), store, aGrant("g"))).To(Succeed())
		Expect(store.Close()).To(Succeed())
	}
	cut := func(size int64) func() {
		return func() { Expect(os.Truncate(file, size)).To(Succeed()) }
	}
	remove := func() { Expect(os.Remove(file)).To(Succeed()) }
	empty := func() { // as SQLite leaves a file in which nothing was ever made
		remove()
		Expect(create(file)).To(Succeed())
		database, err := sqlite.Open(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(database.Writer.Exec("VACUUM").Error).To(Succeed())
		Expect(database.Close()).To(Succeed())
	}

	DescribeTable("is refused at the start, with the remedy", func(lose func(), remedy string) {
		begin()
		lose()
		before, _ := os.ReadFile(file)
		for _, open := range []func() error{
			func() error { _, err := OpenSQLite(file); return err },
			func() error { _, err := MigrateSQLite(file); return err },
		} {
			Expect(open()).To(
				MatchError(And(ContainSubstring("opening the OAuth database "+file), ContainSubstring("restore"),
					ContainSubstring(remedy))))
		}
		after, _ := os.ReadFile(file)
		Expect(after).To(Equal(before), "nothing is made of it")
	},
		Entry("when it is gone", remove, "to begin anew without it, delete that file as well"),
		Entry("when it is empty", cut(0), "to begin anew without it, delete that file as well"),
		Entry("when it has no tables", empty, "to begin anew without it, delete that file as well"),
		Entry("when it is cut in its head", cut(10), "it is not a SQLite database or it is damaged"),
		Entry("when it is cut behind its head", cut(100), "it is not a SQLite database or it is damaged"),
		Entry("when its first page is left", cut(4096), "it is not a SQLite database or it is damaged"),
		Entry("when two pages are left", cut(2*4096), "it is not a SQLite database or it is damaged"),
		Entry("when it is cut in a page", cut(5000), "it is not a SQLite database or it is damaged"),
		Entry("when it is full of zeros", func() {
			write(strings.Repeat("\x00", 3*4096))(file)
		}, "it is not a SQLite database or it is damaged"),
	)

	It("keeps its log, which SQLite would delete with a new database", func() {
		begin()
		cut(0)()
		write("what was not written back")(file + "-wal")
		_, err := OpenSQLite(file)
		Expect(err).To(MatchError(ContainSubstring("missing or empty")))
		Expect(os.ReadFile(file + "-wal")).To(BeEquivalentTo("what was not written back"))
	})

	It("is told by commands that open what is there, too", func() {
		begin()
		cut(0)()
		_, err := OpenExisting(file)
		Expect(err).To(MatchError(ContainSubstring("missing or empty")))
	})

	It("goes on when the file is put back, and begins anew when the secret is deleted", func() {
		begin()
		kept, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		remove()
		write(string(kept))(file)
		store := openIn(filepath.Dir(file))
		Expect(listed(GinkgoT().Context(), store)).To(HaveLen(1))
		Expect(store.Close()).To(Succeed())
		remove()
		Expect(os.Remove(file + ".secret")).To(Succeed())
		Expect(listed(GinkgoT().Context(), openIn(filepath.Dir(file)))).To(BeEmpty())
	})

	It("may be the destination of a copy, whose secret is there first", func() {
		begin()
		remove()
		Expect(CreateSQLite(file)).To(HaveLen(len(migrations)))
	})

	DescribeTable("is none beside a secret that nothing was begun with", func(prepare func()) {
		secret := strings.Repeat("s", 32)
		write(secret)(file + ".secret")
		prepare()
		store := openIn(filepath.Dir(file))
		Expect(store.Secrets()).To(Equal([][]byte{[]byte(secret)}))
		Expect(store.secretFile.IsUsed()).To(BeTrue())
	},
		Entry("in a fresh folder", func() {}),
		Entry("when the first start was interrupted", func() { Expect(create(file)).To(Succeed()) }),
	)

	It("is not noticed where the secret cannot be marked", func() {
		if os.Getuid() == 0 || runtime.GOOS == "windows" {
			Skip("root may write anywhere")
		}
		mounted := filepath.Join(GinkgoT().TempDir(), "mounted")
		Expect(os.Mkdir(mounted, 0o700)).To(Succeed())
		write(strings.Repeat("s", 32))(filepath.Join(mounted, "secret"))
		Expect(os.Chmod(mounted, 0o500)).To(Succeed())
		Expect(os.Symlink(filepath.Join(mounted, "secret"), file+".secret")).To(Succeed())
		begin()
		remove()
		openIn(filepath.Dir(file))
	})
})

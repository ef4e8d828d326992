package persistence

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A SQLite file that is damaged", Label("J2", "H7"), func() {
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

	DescribeTable("is refused at the start, with the remedy", func(damage func()) {
		begin()
		damage()
		before, _ := os.ReadFile(file)
		for _, open := range []func() error{
			func() error { _, err := OpenSQLite(file); return err },
			func() error { _, err := Migrate(file, ServerOptions{}); return err },
		} {
			Expect(open()).To(
				MatchError(And(ContainSubstring("opening the OAuth database "+file), ContainSubstring("restore"),
					ContainSubstring("it is not a SQLite database or it is damaged"))))
		}
		after, _ := os.ReadFile(file)
		Expect(after).To(Equal(before), "nothing is made of it")
	},
		Entry("when it is cut in its head", cut(10)),
		Entry("when it is cut behind its head", cut(100)),
		Entry("when its first page is left", cut(4096)),
		Entry("when two pages are left", cut(2*4096)),
		Entry("when it is cut in a page", cut(5000)),
		Entry("when it is full of zeros", func() {
			write(strings.Repeat("\x00", 3*4096))(file)
		}),
	)

	It("is made anew when it is gone, under the server secret that is there", func() {
		begin()
		secret, err := os.ReadFile(file + ".secret")
		Expect(err).NotTo(HaveOccurred())
		Expect(os.Remove(file)).To(Succeed())
		Expect(listed(GinkgoT().Context(), openIn(filepath.Dir(file)))).To(BeEmpty())
		Expect(os.ReadFile(file + ".secret")).To(Equal(secret))
	})
})

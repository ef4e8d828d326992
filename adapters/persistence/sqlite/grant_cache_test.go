package sqlite

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"gorm.io/gorm"
)

var _ = Describe("Caching grants", Label("E9", "I22", "G7"), func() {
	It("reads nothing twice while no transaction commits", func(ctx SpecContext) {
		d := openIn(GinkgoT().TempDir())
		Expect(add(ctx, d, "g")).To(Succeed())
		reads := 0
		for range 3 {
			_, err := d.Grants.Lookup("g", func() (any, error) {
				reads++
				return find(d.Reader, "g")
			})
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(reads).To(Equal(1))
	})

	It("does not cache that there was nothing", func(ctx SpecContext) {
		d := openIn(GinkgoT().TempDir())
		_, err := lookup(ctx, d, "g")
		Expect(err).To(HaveOccurred())
		Expect(d.Grants.grants.Len()).To(BeZero())
	})

	It("uses nothing of a file that was replaced, nor of a file that is gone", Label("N14"), func(ctx SpecContext) {
		directory, elsewhere := GinkgoT().TempDir(), GinkgoT().TempDir()
		d, other := openIn(directory), openIn(elsewhere)
		file := filepath.Join(directory, "oauth.db")
		Expect(add(ctx, d, "g")).To(Succeed())
		Expect(ended(ctx, d, "g")).To(BeFalse())
		Expect(add(ctx, other, "g")).To(Succeed())
		end(ctx, other, "g")
		Expect(other.Close()).To(Succeed())
		Expect(os.Rename(file, file+".away")).To(Succeed())
		Eventually(func() error {
			_, err := lookup(ctx, d, "g")
			return err
		}).Should(MatchError(os.ErrNotExist))
		Expect(os.Remove(file + "-wal")).To(Succeed())
		Expect(os.Rename(filepath.Join(elsewhere, "oauth.db"), file)).To(Succeed())
		Eventually(func() bool { return ended(ctx, d, "g") }).Should(BeTrue())
	})

	It("does not cache what was read before a commit", func(ctx SpecContext) {
		directory := GinkgoT().TempDir()
		d, other := openIn(directory), openIn(directory)
		Expect(add(ctx, d, "g")).To(Succeed())
		_, err := d.Grants.Lookup("g", func() (any, error) {
			entry, err := find(d.Reader, "g")
			end(ctx, other, "g")
			Expect(ended(ctx, d, "g")).To(BeTrue()) // another lookup sees the commit first
			d.Grants.grants.Purge()                 // so that only this lookup can cache the entry
			return entry, err
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(ended(ctx, d, "g")).To(BeTrue())
	})

	It("evicts the grants that were not used for longest when it is full", Label("H5"), func() {
		cache := openIn(GinkgoT().TempDir()).Grants
		_, emptied, err := cache.cached("0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(cache.grants.Purge) // the file has no such rows
		keep := func(i int) { cache.keep(strconv.Itoa(i), &grant{id: strconv.Itoa(i)}, emptied) }
		for i := range maxGrants {
			keep(i)
		}
		entry, _, err := cache.cached("0")
		Expect(err).NotTo(HaveOccurred())
		Expect(entry).NotTo(BeNil())
		keep(maxGrants)
		Expect(cache.grants.Len()).To(Equal(maxGrants))
		Expect(cache.grants.Contains("0")).To(BeTrue())
		Expect(cache.grants.Contains("1")).To(BeFalse())
	})
})

var _ = Describe("Sharing a SQLite file with other processes", Label("I22"), func() {
	It("sees what another process has ended after SQLite had to make the WAL index anew, and count from the beginning",
		func(ctx SpecContext) {
			directory := GinkgoT().TempDir()
			d := openIn(directory)
			Expect(add(ctx, d, "g")).To(Succeed())
			for i := range 20 {
				Expect(d.Write(ctx, BusyTimeout, func(tx *gorm.DB) error {
					return count(tx, strconv.Itoa(i), 0)
				})).To(Succeed())
			}
			Expect(ended(ctx, d, "g")).To(BeFalse())
			shared := openShared(filepath.Join(directory, "oauth.db"))
			before := commits(shared)
			leaveHalfACommit(shared)
			newEnding(filepath.Join(directory, "oauth.db")).end()
			Expect(commits(shared)).To(BeNumerically("<", before))
			Expect(ended(ctx, d, "g")).To(BeTrue())
		})
})

// openShared opens the WAL index (https://www.sqlite.org/walformat.html, section 2.1). It stays
// open: closing it would release the locks of this process.
func openShared(file string) *os.File {
	GinkgoHelper()
	shared, err := os.OpenFile(file+"-shm", os.O_RDWR, 0)
	Expect(err).NotTo(HaveOccurred())
	keptOpen = append(keptOpen, shared)
	return shared
}

var keptOpen []*os.File

const (
	walHead    = 4 * 12 // bytes, of which there are two copies
	walCommits = 4 * 2  // where the number of commits is
)

func commits(shared *os.File) uint32 {
	GinkgoHelper()
	number := make([]byte, 4)
	_, err := shared.ReadAt(number, walCommits)
	Expect(err).NotTo(HaveOccurred())
	return binary.NativeEndian.Uint32(number)
}

// leaveHalfACommit leaves what a process leaves that is killed between the two copies of the head,
// of which it writes the second one first.
func leaveHalfACommit(shared *os.File) {
	GinkgoHelper()
	head := make([]byte, walHead)
	_, err := shared.ReadAt(head, 0)
	Expect(err).NotTo(HaveOccurred())
	binary.NativeEndian.PutUint32(head[walCommits:], commits(shared)+1)
	_, err = shared.WriteAt(head, walHead)
	Expect(err).NotTo(HaveOccurred())
}

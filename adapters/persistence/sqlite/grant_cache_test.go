package sqlite

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"gorm.io/gorm"
)

var _ = Describe("Caching grants", Label("E9", "I22", "G7"), func() {
	It("reads nothing twice while no transaction commits", func(ctx SpecContext) {
		d := openIn(GinkgoT().TempDir())
		Expect(add(ctx, d, "g")).To(Succeed())
		d.Grants.reset(Version{})
		reads := 0
		for range 3 {
			_, err := d.Grants.Lookup("g", func() (CacheEntry, error) {
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

	It("has no version after another process has truncated the WAL index", Label("N14"), func() {
		file := filepath.Join(GinkgoT().TempDir(), "oauth.db-shm")
		Expect(os.WriteFile(file, bytes.Repeat([]byte{7}, 4096), 0o600)).To(Succeed())
		index, err := openWALIndex(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(index.head()).NotTo(BeZero())
		Expect(os.Truncate(file, 0)).To(Succeed())
		Expect(index.head()).To(BeZero())
		_, err = (&openedFile{index: index}).version()
		Expect(err).To(MatchError(errNoVersion))
	})

	It("caches what this process has written without a read", Label("H5"), func(ctx SpecContext) {
		d := openIn(GinkgoT().TempDir())
		Expect(add(ctx, d, "g")).To(Succeed())
		Expect(d.Grants.grants.Values()).To(Equal([]CacheEntry{&grant{id: "g"}}))
		end(ctx, d, "g")
		Expect(d.Grants.grants.Values()).To(Equal([]CacheEntry{&grant{id: "g", ended: true}}))
	})

	It("caches nothing of a write that failed", Label("D30"), func(ctx SpecContext) {
		d := openIn(GinkgoT().TempDir())
		Expect(add(ctx, d, "g")).To(Succeed())
		held, answers := hold(ctx, d), make(chan error, 2)
		go func() {
			answers <- d.Write(ctx, BusyTimeout, func(tx *Tx) error {
				return errors.Join(insert(tx, &grant{id: "refused"}), insert(tx, &grant{id: "g"}))
			})
		}()
		go func() { answers <- d.Write(ctx, BusyTimeout, func(tx *Tx) error { return count(tx, "other", 0) }) }()
		Eventually(d.batcher.length).Should(Equal(2))
		held.release()
		held.wait()
		Expect([]error{<-answers, <-answers}).To(ConsistOf(WithTransform(isDuplicateOf, BeTrue()), BeNil()))
		Expect(d.Grants.grants.Contains("refused")).To(BeFalse())
	})

	It("drops after a commit of its own what that has changed", func(ctx SpecContext) {
		d := openIn(GinkgoT().TempDir())
		read := func(id string) (fromFile bool) {
			GinkgoHelper()
			_, err := d.Grants.Lookup(id, func() (CacheEntry, error) {
				fromFile = true
				return find(d.Reader, id)
			})
			Expect(err).NotTo(HaveOccurred())
			return fromFile
		}
		for _, id := range []string{"changed", "forgotten", "other"} {
			Expect(add(ctx, d, id)).To(Succeed())
			Expect(read(id)).To(BeFalse(), "it was just written")
		}
		end(ctx, d, "changed")
		Expect(read("changed")).To(BeFalse())
		Expect(ended(ctx, d, "changed")).To(BeTrue())
		Expect(read("other")).To(BeFalse())
		Expect(d.Write(ctx, BusyTimeout, func(tx *Tx) error {
			tx.ChangedGrant("forgotten", nil)
			return count(tx, "forgotten", 0)
		})).To(Succeed())
		Expect(read("forgotten")).To(BeTrue())
		Expect(read("other")).To(BeFalse())

		before, err := d.Grants.detector.currentVersion()
		Expect(err).NotTo(HaveOccurred())
		Expect(d.Write(ctx, BusyTimeout, func(tx *Tx) error { return count(tx, "row", 0) })).To(Succeed())
		_, found := d.Grants.cached(before, "other") // as a lookup sees it that began just before
		Expect(found).To(BeTrue())
		Expect(read("other")).To(BeFalse())

		Expect(writeUnknown(ctx, d, func(tx *Tx) error { return count(tx, "anything", 1) })).To(Succeed())
		Expect(read("other")).To(BeTrue(), "after an unknown change")
	})

	It("does not cache what was read before a commit", func(ctx SpecContext) {
		directory := GinkgoT().TempDir()
		d, other := openIn(directory), openIn(directory)
		Expect(add(ctx, d, "g")).To(Succeed())
		d.Grants.reset(Version{})
		_, err := d.Grants.Lookup("g", func() (CacheEntry, error) {
			entry, err := find(d.Reader, "g")
			end(ctx, other, "g")
			Expect(ended(ctx, d, "g")).To(BeTrue()) // another lookup sees the commit first
			d.Grants.reset(d.Grants.version)        // so that only this lookup can cache the entry
			return entry, err
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(ended(ctx, d, "g")).To(BeTrue())
	})

	DescribeTable("does not take a commit of another process for its own", Label("I22"),
		func(ctx SpecContext, finish func(tx *gorm.DB) *gorm.DB) {
			directory := GinkgoT().TempDir()
			mine, theirs := openIn(directory), openIn(directory)
			Expect(add(ctx, mine, "g")).To(Succeed())
			Expect(ended(ctx, mine, "g")).To(BeFalse())
			tx := mine.Writer.WithContext(context.Background()).Begin()
			Expect(tx.Error).NotTo(HaveOccurred())
			mine.Grants.begin()
			Expect(finish(tx).Error).To(Succeed())
			end(ctx, theirs, "g") // gets its turn before mine has settled
			mine.Grants.settle(new(Tx))
			Expect(ended(ctx, mine, "g")).To(BeTrue())
		},
		Entry("after a write that was undone", (*gorm.DB).Rollback),
		Entry("after a write that changed nothing", (*gorm.DB).Commit),
	)

	It("evicts the grants that were not used for longest when it is full", Label("H5"), func() {
		cache := openIn(GinkgoT().TempDir()).Grants
		now, err := cache.detector.currentVersion()
		Expect(err).NotTo(HaveOccurred())
		cache.reset(now)
		DeferCleanup(func() { cache.reset(Version{}) }) // the file has no such rows
		keep := func(i int) { cache.keep(now, &grant{id: strconv.Itoa(i)}) }
		for i := range maxGrants {
			keep(i)
		}
		_, found := cache.cached(now, "0")
		Expect(found).To(BeTrue())
		keep(maxGrants)
		Expect(cache.grants.Len()).To(Equal(maxGrants))
		Expect(cache.grants.Contains("0")).To(BeTrue())
		Expect(cache.grants.Contains("1")).To(BeFalse())
	})
})

// isDuplicateOf reports whether one of the joined errors is that of a duplicate key.
func isDuplicateOf(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	return ok && slices.ContainsFunc(joined.Unwrap(), IsDuplicate)
}

var _ = Describe("Sharing a SQLite file with other processes", Label("I22"), func() {
	It("sees what another process has ended after SQLite had to make the WAL index anew, and count from the beginning",
		func(ctx SpecContext) {
			directory := GinkgoT().TempDir()
			d := openIn(directory)
			Expect(add(ctx, d, "g")).To(Succeed())
			for i := range 20 {
				Expect(d.Write(ctx, BusyTimeout, func(tx *Tx) error {
					return count(tx, strconv.Itoa(i), 0)
				})).To(Succeed())
			}
			Expect(ended(ctx, d, "g")).To(BeFalse())
			leaveHalfACommit(filepath.Join(directory, "oauth.db-shm"))
			newEnding(filepath.Join(directory, "oauth.db")).end()
			now, err := d.Grants.detector.currentVersion()
			Expect(err).NotTo(HaveOccurred())
			Expect(now.commits()).To(BeNumerically("<", d.Grants.version.commits()))
			Expect(ended(ctx, d, "g")).To(BeTrue())
		})

	DescribeTable("leaves SQLite its locks when another database on the same file is closed",
		func(ctx SpecContext, close func(d, other *Database)) {
			directory := GinkgoT().TempDir()
			d, other := openIn(directory), openIn(directory)
			Expect(add(ctx, d, "g")).To(Succeed())
			Expect(ended(ctx, d, "g")).To(BeFalse())
			Expect(ended(ctx, other, "g")).To(BeFalse())
			// Its Close does not wait for the write below.
			Expect(other.Writer.Exec("PRAGMA busy_timeout = 0").Error).To(Succeed())
			held := hold(ctx, d)
			close(d, other)
			process := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestSQLite$")
			process.Env = append(os.Environ(), lockVariable+"="+filepath.Join(directory, "oauth.db"))
			answer, err := process.CombinedOutput()
			Expect(err).NotTo(HaveOccurred())
			Expect(string(answer)).To(HavePrefix("database is locked"))
			held.release()
			held.wait()
		},
		Entry("and this one goes on", func(_, other *Database) { Expect(other.Close()).To(Succeed()) }),
		Entry("and this one too, during a write", func(d, other *Database) {
			Expect(other.Close()).To(Succeed())
			Expect(d.Disconnect()).To(Succeed())
		}),
	)
})

// leaveHalfACommit leaves what a process leaves that is killed between the two copies of the head,
// of which it writes the second one first. The file stays open: closing it would release the locks
// of this process.
func leaveHalfACommit(path string) {
	GinkgoHelper()
	shared, err := os.OpenFile(path, os.O_RDWR, 0)
	Expect(err).NotTo(HaveOccurred())
	walIndexes.Lock()
	walIndexes.open = append(walIndexes.open, &walIndex{file: shared}) // to be closed with the last connection
	walIndexes.Unlock()
	var head [4 * len(walIndexHead{})]byte
	_, err = shared.ReadAt(head[:], 0)
	Expect(err).NotTo(HaveOccurred())
	commits := head[4*walCommits:]
	binary.NativeEndian.PutUint32(commits, binary.NativeEndian.Uint32(commits)+1)
	_, err = shared.WriteAt(head[:], int64(len(head)))
	Expect(err).NotTo(HaveOccurred())
}

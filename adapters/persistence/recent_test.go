package persistence

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Remembering what the guard has read", Label("E9", "I22", "G7"), func() {
	It("reads nothing twice while nobody writes", func(ctx SpecContext) {
		store := openIn(GinkgoT().TempDir())
		Expect(store.AddGrant(ctx, aGrant("g", 1), nil)).To(Succeed())
		store.recent.forgetAll(version{})
		reads := 0
		for range 3 {
			_, err := store.recent.read(digest(0), func() (*foundRow, error) {
				reads++
				return store.engine.finds(store.reader.WithContext(ctx), digest(0))
			})
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(reads).To(Equal(1))
	})

	It("does not remember that there was nothing", func(ctx SpecContext) {
		store := openIn(GinkgoT().TempDir())
		_, err := store.Grant(ctx, digest(0))
		Expect(err).To(MatchError(oauth.ErrNotFound))
		Expect(store.recent.rows).To(BeEmpty())
	})

	It("hands out grants that do not share what is changed in them", func(ctx SpecContext) {
		store := openIn(GinkgoT().TempDir())
		Expect(store.AddGrant(ctx, aGrant("g", 1), nil)).To(Succeed())
		first, err := store.Grant(ctx, digest(0))
		Expect(err).NotTo(HaveOccurred())
		first.End(oauth.EndedByHost, time.Now())
		Expect(ended(ctx, store, digest(0))).To(BeFalse())
	})

	It("remembers nothing of a file that another one has replaced, nor of one that is gone", Label("N14"), func(ctx SpecContext) {
		directory := GinkgoT().TempDir()
		store, other := openIn(directory), openIn(GinkgoT().TempDir())
		file := filepath.Join(directory, "oauth.db")
		Expect(store.AddGrant(ctx, aGrant("g", 1), nil)).To(Succeed())
		Expect(ended(ctx, store, digest(0))).To(BeFalse())
		Expect(other.AddGrant(ctx, aGrant("g", 1), nil)).To(Succeed())
		end(ctx, other, digest(0))
		Expect(other.Close()).To(Succeed())
		Expect(os.Rename(file, file+".away")).To(Succeed())
		Eventually(func() error {
			_, err := store.Grant(ctx, digest(0))
			return err
		}).Should(unavailable())
		Expect(os.Remove(file + "-wal")).To(Succeed())
		Expect(os.Rename(filepath.Join(filepath.Dir(other.secretFile.Path()), "oauth.db"), file)).To(Succeed())
		Eventually(func() bool { return ended(ctx, store, digest(0)) }).Should(BeTrue())
	})

	It("survives that somebody empties the WAL index under it, and then knows nothing", Label("N14"), func() {
		file := filepath.Join(GinkgoT().TempDir(), "oauth.db-shm")
		Expect(os.WriteFile(file, bytes.Repeat([]byte{7}, os.Getpagesize()), 0o600)).To(Succeed())
		index, err := openIndex(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(index.head()).NotTo(BeZero())
		Expect(os.Truncate(file, 0)).To(Succeed())
		Expect(index.head()).To(BeZero())
		_, err = (&opening{index: index}).version()
		Expect(err).To(MatchError(errNoIndex))
	})

	It("knows what it has written itself without a read", Label("H5"), func(ctx SpecContext) {
		store := openIn(GinkgoT().TempDir())
		Expect(store.AddGrant(ctx, aGrant("g", 2), nil)).To(Succeed())
		Expect(store.recent.rows).To(And(HaveLen(2), HaveKey(digest(0)), HaveKey(digest(1))))
		end(ctx, store, digest(0))
		Expect(store.recent.rows).To(And(HaveLen(1), HaveKey(digest(0))))
	})

	It("remembers nothing of a write that was refused", Label("D30"), func(ctx SpecContext) {
		store := openIn(GinkgoT().TempDir())
		Expect(store.AddGrant(ctx, aGrant("g", 1), nil)).To(Succeed())
		held := hold(ctx, store)
		refused, other := aGrant("refused", 2), make(chan error, 2) // whose first secret is there already
		go func() { other <- store.AddGrant(ctx, refused, nil) }()
		go func() { other <- store.UseOnce(ctx, digest(7), then) }()
		Eventually(store.group.length).Should(Equal(2))
		held.release()
		held.wait()
		Expect([]error{<-other, <-other}).To(ConsistOf(MatchError(oauth.ErrDuplicate), BeNil()))
		Expect(store.recent.rows).NotTo(HaveKey(digest(1)))
	})

	It("forgets of a commit of its own what that has changed", func(ctx SpecContext) {
		store := openIn(GinkgoT().TempDir())
		read := func(secret oauth.Digest) (fromFile bool) {
			GinkgoHelper()
			_, err := store.recent.read(secret, func() (*foundRow, error) {
				fromFile = true
				return store.engine.finds(store.reader.WithContext(ctx), secret)
			})
			Expect(err).NotTo(HaveOccurred())
			return fromFile
		}
		Expect(store.AddGrant(ctx, aGrant("changed", 2), nil)).To(Succeed())
		other := oauth.Digest{31: 1}
		Expect(store.AddGrant(ctx, oauth.RestoreGrant(oauth.GrantSnapshot{ID: "other"}, oauth.SecretSnapshot{Digest: other[:], Grant: "other"}), nil)).To(Succeed())
		for _, secret := range []oauth.Digest{digest(0), digest(1), other} {
			Expect(read(secret)).To(BeFalse(), "what was just written")
		}
		end(ctx, store, digest(0))
		Expect(read(digest(0))).To(BeFalse())
		Expect(ended(ctx, store, digest(0))).To(BeTrue())
		Expect(read(digest(1))).To(BeTrue(), "another secret of the same grant")
		Expect(read(other)).To(BeFalse())

		before, err := store.recent.watch.version()
		Expect(err).NotTo(HaveOccurred())
		Expect(store.UseOnce(ctx, digest(0), then)).To(Succeed())
		_, found := store.recent.remembered(before, other) // as somebody sees it who has looked just before
		Expect(found).To(BeTrue())
		Expect(read(other)).To(BeFalse())

		Expect(store.transaction(ctx, func(tx *gorm.DB) error { return count(tx, "anything", 1) })).To(Succeed())
		Expect(read(other)).To(BeTrue(), "after a change of nobody knows what")
	})

	It("does not remember what was read before a commit", func(ctx SpecContext) {
		directory := GinkgoT().TempDir()
		store, other := openIn(directory), openIn(directory)
		Expect(store.AddGrant(ctx, aGrant("g", 1), nil)).To(Succeed())
		store.recent.forgetAll(version{})
		_, err := store.recent.read(digest(0), func() (*foundRow, error) {
			row, err := store.engine.finds(store.reader.WithContext(ctx), digest(0))
			end(ctx, other, digest(0))
			Expect(ended(ctx, store, digest(0))).To(BeTrue()) // another request sees the commit first
			store.recent.forgetAll(store.recent.holds)        // so that only this read can remember the row
			return row, err
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(ended(ctx, store, digest(0))).To(BeTrue())
	})

	DescribeTable("does not take a commit of another process for its own", Label("I22"),
		func(ctx SpecContext, finish func(tx *gorm.DB) error) {
			directory := GinkgoT().TempDir()
			mine, theirs := openIn(directory), openIn(directory)
			Expect(mine.AddGrant(ctx, aGrant("g", 1), nil)).To(Succeed())
			Expect(ended(ctx, mine, digest(0))).To(BeFalse())
			tx := mine.writer.WithContext(context.Background()).Begin()
			Expect(tx.Error).NotTo(HaveOccurred())
			mine.recent.begin()
			Expect(finish(tx)).To(Succeed())
			end(ctx, theirs, digest(0)) // gets its turn before mine has looked
			mine.recent.settle(&changes{})
			Expect(ended(ctx, mine, digest(0))).To(BeTrue())
		},
		Entry("after a write that was refused", undo),
		Entry("after one that changed nothing", func(tx *gorm.DB) error { return tx.Commit().Error }),
	)

	Context("when there is more than it may remember", Label("H5"), func() {
		var remembering *recent
		var now version
		remember := func(secret, grant int) {
			digest := digest(secret)
			remembering.remember(now, digest, &foundRow{Secret: secretRow{Digest: digest[:]}, Grant: &grantRow{ID: strconv.Itoa(grant)}})
		}
		BeforeEach(func() {
			remembering = openIn(GinkgoT().TempDir()).recent
			var err error
			now, err = remembering.watch.version()
			Expect(err).NotTo(HaveOccurred())
			remembering.forgetAll(now)
			DeferCleanup(func() {
				remembering.forgetAll(version{}) // there are no such rows in the file
				Expect(remembering.rows).To(BeEmpty())
			})
		})

		It("forgets the grants that were not asked for longest", func() {
			for i := range 2 * recentGrants {
				remember(i, i/2)
			}
			_, found := remembering.remembered(now, digest(0))
			Expect(found).To(BeTrue())
			remember(2*recentGrants, recentGrants)
			Expect(remembering.grants.Len()).To(Equal(recentGrants))
			Expect(remembering.rows).To(And(HaveLen(2*recentGrants-1), HaveKey(digest(0)), HaveKey(digest(1))))
			Expect(remembering.rows).NotTo(Or(HaveKey(digest(2)), HaveKey(digest(3))))
		})

		It("forgets the secrets of one grant that came first", func() {
			for i := range recentSecrets + 1 {
				remember(i, 0)
			}
			Expect(remembering.rows).To(And(HaveLen(recentSecrets), HaveKey(digest(recentSecrets)), Not(HaveKey(digest(0)))))
		})
	})

	It("sees what another process has ended after SQLite had to make the WAL index anew, and count from the beginning", Label("I22"), func(ctx SpecContext) {
		directory := GinkgoT().TempDir()
		store := openIn(directory)
		Expect(store.AddGrant(ctx, aGrant("g", 1), nil)).To(Succeed())
		for i := range 20 {
			Expect(store.UseOnce(ctx, digest(i), then)).To(Succeed())
		}
		Expect(ended(ctx, store, digest(0))).To(BeFalse())
		leaveHalfACommit(filepath.Join(directory, "oauth.db-shm"))
		newEnding(filepath.Join(directory, "oauth.db")).end()
		now, err := store.recent.watch.version()
		Expect(err).NotTo(HaveOccurred())
		Expect(now.commits()).To(BeNumerically("<", store.recent.holds.commits()))
		Expect(ended(ctx, store, digest(0))).To(BeTrue())
	})

	DescribeTable("leaves SQLite its locks when a store on the same file is closed", Label("I22"),
		func(ctx SpecContext, close func(store, other *Store)) {
			directory := GinkgoT().TempDir()
			store, other := openIn(directory), openIn(directory)
			Expect(store.AddGrant(ctx, aGrant("g", 1), nil)).To(Succeed())
			Expect(ended(ctx, store, digest(0))).To(BeFalse())
			Expect(ended(ctx, other, digest(0))).To(BeFalse())
			Expect(other.writer.Exec("PRAGMA busy_timeout = 0").Error).To(Succeed()) // its Close does not wait for the change below
			held := hold(ctx, store)
			close(store, other)
			process := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestPersistence$")
			process.Env = append(os.Environ(), lockVariable+"="+filepath.Join(directory, "oauth.db"))
			answer, err := process.CombinedOutput()
			Expect(err).NotTo(HaveOccurred())
			Expect(string(answer)).To(HavePrefix("database is locked"))
			held.release()
			held.wait()
		},
		Entry("and this one goes on", func(_, other *Store) { Expect(other.Close()).To(Succeed()) }),
		Entry("and this one too, during a change", func(store, other *Store) {
			Expect(other.Close()).To(Succeed())
			Expect(store.letGo()).To(Succeed())
		}),
	)
})

// ended reports what the guard sees.
func ended(ctx context.Context, s *Store, secret oauth.Digest) bool {
	GinkgoHelper()
	grant, err := s.Grant(ctx, secret)
	Expect(err).NotTo(HaveOccurred())
	snapshot, _ := grant.Snapshot()
	return snapshot.State == "ended"
}

func end(ctx context.Context, s *Store, secret oauth.Digest) {
	GinkgoHelper()
	Expect(s.UpdateGrant(ctx, secret, func(g *oauth.AccessGrant) error {
		g.End(oauth.EndedByHost, time.Now())
		return nil
	})).To(Succeed())
}

// leaveHalfACommit leaves what a process does that is killed between the two copies of the head, of which it writes the second one first.
// The file stays open: closing it would take away the locks of this process.
func leaveHalfACommit(path string) {
	GinkgoHelper()
	shared, err := os.OpenFile(path, os.O_RDWR, 0)
	Expect(err).NotTo(HaveOccurred())
	indexes.Lock()
	indexes.open = append(indexes.open, &index{file: shared}) // to be closed with the last connection
	indexes.Unlock()
	var head [4 * indexHead]byte
	_, err = shared.ReadAt(head[:], 0)
	Expect(err).NotTo(HaveOccurred())
	commits := head[4*indexCommits:]
	binary.NativeEndian.PutUint32(commits, binary.NativeEndian.Uint32(commits)+1)
	_, err = shared.WriteAt(head[:], int64(len(head)))
	Expect(err).NotTo(HaveOccurred())
}

// lockVariable makes this test binary try to write to the file that it names, without waiting.
const lockVariable = "PERSISTENCE_LOCK"

func lock(file string) {
	opened, err := connector{}.Driver().Open("file:" + url.PathEscape(file) + "?mode=rw&_pragma=busy_timeout(0)")
	if err == nil {
		_, err = opened.(session).ExecContext(context.Background(), "BEGIN IMMEDIATE", nil)
	}
	fmt.Println(err)
}

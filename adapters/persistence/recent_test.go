package persistence

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
)

// races is how often it is tried; a longer run is asked for by the environment.
func races() int {
	if asked, err := strconv.Atoi(os.Getenv("RACES")); err == nil {
		return asked
	}
	return 500
}

var _ = Describe("Remembering what the guard has read", Label("E9", "I22", "G7"), func() {
	It("reads nothing twice while nobody writes", func(ctx SpecContext) {
		store := openIn(GinkgoT().TempDir())
		Expect(store.AddGrant(ctx, aGrant("g", 1), nil)).To(Succeed())
		reads := 0
		for range 3 {
			_, err := store.recent.read(digest(0), func() (foundRow, error) {
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
		Expect(store.recent.rows.Len()).To(BeZero())
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
		_, err := store.Grant(ctx, digest(0))
		Expect(err).To(unavailable())
		Expect(os.Remove(file + "-wal")).To(Succeed())
		Expect(os.Rename(filepath.Join(filepath.Dir(other.secretFile), "oauth.db"), file)).To(Succeed())
		Expect(ended(ctx, store, digest(0))).To(BeTrue())
	})

	It("forgets of a commit of its own what that has changed", func(ctx SpecContext) {
		store := openIn(GinkgoT().TempDir())
		read := func(secret oauth.Digest) (fromFile bool) {
			GinkgoHelper()
			_, err := store.recent.read(secret, func() (foundRow, error) {
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
			Expect(read(secret)).To(BeTrue())
			Expect(read(secret)).To(BeFalse())
		}
		end(ctx, store, digest(0))
		Expect(read(digest(0))).To(BeTrue())
		Expect(read(digest(1))).To(BeTrue(), "another secret of the same grant")
		Expect(read(other)).To(BeFalse())

		before, err := store.recent.watch.version()
		Expect(err).NotTo(HaveOccurred())
		Expect(store.UseOnce(ctx, digest(0), then)).To(Succeed())
		_, found := store.recent.remembered(before, other) // as somebody sees it who has looked just before
		Expect(found).To(BeFalse())
		Expect(read(other)).To(BeFalse())

		Expect(store.transaction(ctx, func(tx *gorm.DB) error { return count(tx, "anything", 1) })).To(Succeed())
		Expect(read(other)).To(BeTrue(), "after a change of nobody knows what")
	})

	It("does not remember what was read before a commit", func(ctx SpecContext) {
		store := openIn(GinkgoT().TempDir())
		Expect(store.AddGrant(ctx, aGrant("g", 1), nil)).To(Succeed())
		_, err := store.recent.read(digest(0), func() (foundRow, error) {
			row, err := store.engine.finds(store.reader.WithContext(ctx), digest(0))
			end(ctx, store, digest(0))
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

	It("remembers no more than it may", func() {
		remembering := openIn(GinkgoT().TempDir()).recent
		now, err := remembering.watch.version()
		Expect(err).NotTo(HaveOccurred())
		remembering.forgetAll(now)
		for i := range 3 * recentGrants / 2 {
			remembering.remember(now, digest(i), foundRow{Grant: grantRow{ID: strconv.Itoa(i / 2)}})
		}
		Expect(remembering.rows.Len()).To(Equal(recentGrants))
		Expect(remembering.secrets).To(HaveLen(recentGrants / 2))
	})

	DescribeTable("leaves SQLite its locks when a store on the same file is closed", Label("I22"),
		func(ctx SpecContext, close func(store, other *Store)) {
			directory := GinkgoT().TempDir()
			store, other := openIn(directory), openIn(directory)
			Expect(store.AddGrant(ctx, aGrant("g", 1), nil)).To(Succeed())
			Expect(ended(ctx, store, digest(0))).To(BeFalse())
			Expect(ended(ctx, other, digest(0))).To(BeFalse())
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

	It("never shows a grant alive after its end was answered by another process", func(ctx SpecContext) {
		directory := GinkgoT().TempDir()
		store := openIn(directory)
		ending := newEnding(filepath.Join(directory, "oauth.db"))
		race(ctx, store, store, func(oauth.Digest) { ending.end() })
	}, NodeTimeout(time.Hour))

	for where, open := range map[string]func() (mine, theirs *Store){
		"in one process": func() (*Store, *Store) {
			store := openIn(GinkgoT().TempDir())
			return store, store
		},
		"by another store on the same file": func() (*Store, *Store) {
			directory := GinkgoT().TempDir()
			return openIn(directory), openIn(directory)
		},
	} {
		It("never shows a grant alive after its end was answered, "+where, func(ctx SpecContext) {
			mine, theirs := open()
			race(ctx, mine, theirs, func(secret oauth.Digest) { end(ctx, theirs, secret) })
		}, NodeTimeout(time.Hour))
	}
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

// race lets a few use a grant while end ends it.
func race(ctx context.Context, mine, theirs *Store, end func(oauth.Digest)) {
	GinkgoHelper()
	for i := range races() {
		secret := digest(0)
		Expect(theirs.AddGrant(ctx, aGrant("g"+strconv.Itoa(i), 1), nil)).To(Succeed())
		var answered atomic.Bool
		var users sync.WaitGroup
		for range 3 {
			users.Go(func() {
				defer GinkgoRecover()
				for last := false; !last; {
					last = answered.Load()
					Expect(ended(ctx, mine, secret) || !last).To(BeTrue(), "used after its end was answered")
				}
			})
		}
		end(secret)
		answered.Store(true)
		users.Wait()
		Expect(theirs.writer.Exec("DELETE FROM grants").Error).To(Succeed())
	}
}

// lockVariable makes this test binary try to write to the file that it names, without waiting.
const lockVariable = "PERSISTENCE_LOCK"

func lock(file string) {
	db, err := connect(connector{file, asItIs(file, "busy_timeout(0)")}, 1)
	if err == nil {
		err = db.Begin().Error
	}
	fmt.Println(err)
}

// ending is another process, which ends the grant whenever it is told to.
type ending struct {
	input  io.Writer
	output *bufio.Scanner
}

// endsVariable makes this test binary end the grant in the file that it names, at every line that it reads.
const endsVariable = "PERSISTENCE_END_GRANTS_IN"

func newEnding(file string) *ending {
	GinkgoHelper()
	process := exec.Command(os.Args[0], "-test.run=^TestPersistence$") // ends with its input
	process.Env = append(os.Environ(), endsVariable+"="+file)
	input, err := process.StdinPipe()
	Expect(err).NotTo(HaveOccurred())
	output, err := process.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(process.Start()).To(Succeed())
	DeferCleanup(func() {
		Expect(input.Close()).To(Succeed())
		Expect(process.Wait()).To(Succeed())
	})
	return &ending{input, bufio.NewScanner(output)}
}

func (e *ending) end() {
	GinkgoHelper()
	Expect(fmt.Fprintln(e.input)).To(Equal(1))
	Expect(e.output.Scan()).To(BeTrue())
	Expect(e.output.Text()).To(Equal("ended"))
}

func endGrantsIn(file string) {
	store, err := OpenSQLite(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(endGrant(store))
	}
	_ = store.Close()
}

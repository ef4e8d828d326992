package persistence

import (
	"context"
	"errors"
	"fmt"
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

var _ = Describe("Writes that wait at the same moment", Label("H5", "D30"), func() {
	var (
		store   *Store
		held    *holding
		answers map[string]error
		writing sync.WaitGroup
	)
	BeforeEach(func(ctx SpecContext) {
		store = openIn(GinkgoT().TempDir())
		Expect(store.AddGrant(ctx, aGrant("g", 1), nil)).To(Succeed())
		held, answers = hold(ctx, store), map[string]error{}
	})

	// write waits until the write has joined, so that they come in this order.
	var mu sync.Mutex
	write := func(ctx context.Context, name string, work func(tx *gorm.DB) error) {
		GinkgoHelper()
		before := store.group.length()
		writing.Go(func() {
			defer GinkgoRecover()
			err := store.transaction(ctx, work)
			mu.Lock()
			defer mu.Unlock()
			answers[name] = err
		})
		Eventually(store.group.length).WithContext(ctx).WithTimeout(patience).Should(Equal(before + 1))
	}
	add := func(ctx context.Context, id string) {
		GinkgoHelper()
		write(ctx, id, func(tx *gorm.DB) error { return count(tx, id, 0) })
	}
	kept := func() (names []string) {
		GinkgoHelper()
		Expect(store.reader.Raw("SELECT rtrim(CAST(name AS TEXT)) FROM counters ORDER BY 1").Scan(&names).Error).To(Succeed())
		return names
	}

	It("share one commit", func(ctx SpecContext) {
		before, err := store.recent.watch.version()
		Expect(err).NotTo(HaveOccurred())
		for i := range 20 {
			add(ctx, strconv.Itoa(i))
		}
		held.release()
		writing.Wait()
		Expect(answers).To(HaveLen(20))
		Expect(answers).To(HaveEach(BeNil()))
		after, err := store.recent.watch.version()
		Expect(err).NotTo(HaveOccurred())
		Expect(after.commits() - before.commits()).To(BeEquivalentTo(2)) // the one that they waited for, and theirs
		Expect(kept()).To(HaveLen(20))
	})

	It("find whoever writes where it rests, or after it has gone", func(ctx SpecContext) {
		held.release()
		held.wait()
		writes := func() bool { store.group.mu.Lock(); defer store.group.mu.Unlock(); return store.group.running }
		for i := range 50 {
			Expect(store.UseOnce(ctx, oauth.Digest{30: byte(i)}, then)).To(Succeed())
			Expect(writes()).To(BeTrue())
		}
		Eventually(writes).WithContext(ctx).WithTimeout(10 * restLimit).Should(BeFalse())
		Expect(store.UseOnce(ctx, oauth.Digest{30: 200}, then)).To(Succeed())
	})

	It("see what those before them have changed", Label("I22"), func(ctx SpecContext) {
		other := oauth.Digest{31: 7}
		held.release()
		held.wait()
		Expect(store.AddGrant(ctx, oauth.RestoreGrant(oauth.GrantSnapshot{ID: "other", State: "active", CreatedAt: then, IdleEnd: then.Add(time.Hour)}, oauth.SecretSnapshot{Digest: other[:], Grant: "other"}), nil)).To(Succeed())
		Expect(ended(ctx, store, other)).To(BeFalse()) // from now on it is remembered
		held = hold(ctx, store)
		var ends atomic.Int32
		for i := range 5 {
			writing.Go(func() {
				defer GinkgoRecover()
				Expect(store.UpdateGrant(ctx, other, func(g *oauth.AccessGrant) error {
					if g.End(oauth.EndedByHost, then) {
						ends.Add(1)
					}
					return nil
				})).To(Succeed())
			})
			Eventually(store.group.length).WithContext(ctx).WithTimeout(patience).Should(Equal(i + 1))
		}
		held.release()
		writing.Wait()
		Expect(ends.Load()).To(BeEquivalentTo(1))
	})

	It("are refused alone", func(ctx SpecContext) {
		refusal := errors.New("refused")
		add(ctx, "before")
		write(ctx, "refused", func(tx *gorm.DB) error {
			Expect(count(tx, "refused", 0)).To(Succeed())
			return refusal
		})
		add(ctx, "after")
		add(ctx, "before") // a second time
		held.release()
		writing.Wait()
		Expect(answers["refused"]).To(MatchError(refusal))
		Expect(kept()).To(Equal([]string{"after", "before"}))
	})

	DescribeTable("begin again beside one that is refused", func(ctx SpecContext, refused func(tx *gorm.DB) error, runs int) {
		run := 0
		write(ctx, "before", func(tx *gorm.DB) error {
			run++
			return count(tx, "before", 0)
		})
		write(ctx, "refused", func(tx *gorm.DB) error { return errors.Join(refused(tx), errors.New("refused")) })
		add(ctx, "after")
		held.release()
		writing.Wait()
		Expect(answers["refused"]).To(MatchError("refused"))
		Expect(kept()).To(Equal([]string{"after", "before"}))
		Expect(run).To(Equal(runs))
	},
		Entry("when it has written something", func(tx *gorm.DB) error { return count(tx, "refused", 0) }, 2),
		Entry("when it has written by a question", func(tx *gorm.DB) error {
			return tx.Raw("INSERT INTO trace_steps (at, kind, outcome, attempt, request, client, address, agent, rule, reason) VALUES (1, '', '', '', '', '', '', '', '', '') RETURNING number").Scan(new(int)).Error
		}, 2),
		Entry("but not when it has only read", func(tx *gorm.DB) error { return tx.Raw("SELECT count(*) FROM counters").Scan(new(int)).Error }, 1),
		Entry("but not when all that it wrote was there already", func(tx *gorm.DB) error {
			Expect(count(tx, "before", 0)).NotTo(Succeed())
			return nil
		}, 1),
	)

	It("tell the guard nothing of one that is refused, even where it has written nothing", func(ctx SpecContext) {
		never, refusal := digest(9), errors.New("refused")
		before := store.group.length()
		writing.Go(func() {
			defer GinkgoRecover()
			Expect(store.change(ctx, func(tx *changes) error {
				tx.altered = append(tx.altered, alteredGrant{"g", []*foundRow{{Secret: secretRow{Digest: never[:]}, Grant: &grantRow{ID: "g"}}}})
				return refusal
			})).To(MatchError(refusal))
		})
		Eventually(store.group.length).WithContext(ctx).WithTimeout(patience).Should(Equal(before + 1))
		writing.Go(func() {
			defer GinkgoRecover()
			Expect(store.UseOnce(ctx, digest(1), then)).To(Succeed())
		})
		Eventually(store.group.length).WithContext(ctx).WithTimeout(patience).Should(Equal(before + 2))
		held.release()
		writing.Wait()
		_, err := store.Grant(ctx, never)
		Expect(err).To(MatchError(oauth.ErrNotFound))
	})

	It("panic alone", func(ctx SpecContext) {
		add(ctx, "before")
		length := store.group.length()
		writing.Go(func() {
			defer GinkgoRecover()
			Expect(func() {
				_ = store.transaction(ctx, func(tx *gorm.DB) error {
					Expect(tx.Exec("DELETE FROM counters").Error).To(Succeed())
					panic("a bug")
				})
			}).To(PanicWith("a bug"))
		})
		Eventually(store.group.length).WithContext(ctx).WithTimeout(patience).Should(Equal(length + 1))
		add(ctx, "after")
		held.release()
		writing.Wait()
		Expect(answers).To(HaveEach(BeNil()))
		Expect(kept()).To(Equal([]string{"after", "before"}))
	})

	DescribeTable("go on without one that ends the transaction of all", func(ctx SpecContext, tell func(err error) error) {
		held.release()
		held.wait()
		Expect(store.writer.Exec("CREATE TRIGGER full BEFORE INSERT ON counters WHEN new.taken = 7 BEGIN SELECT RAISE(ROLLBACK, 'as if the disk were full'); END").Error).To(Succeed())
		held = hold(ctx, store)
		add(ctx, "before")
		write(ctx, "breaks", func(tx *gorm.DB) error { return tell(count(tx, "breaks", 7)) })
		add(ctx, "after")
		held.release()
		writing.Wait()
		Expect(answers["breaks"]).To(And(MatchError(oauth.ErrUnavailable), MatchError(ContainSubstring("as if the disk were full"))))
		Expect(answers["before"]).To(Succeed())
		Expect(answers["after"]).To(Succeed())
		Expect(kept()).To(Equal([]string{"after", "before"}))
	},
		Entry("and says so", func(err error) error { return failed("counting", err) }),
		Entry("and says nothing of it", func(error) error { return nil }),
	)

	It("leave when their context ends, and keep nobody else from it", func(ctx SpecContext) {
		short, cancel := context.WithCancel(ctx)
		add(ctx, "before")
		add(short, "left")
		add(ctx, "after")
		cancel()
		Eventually(func() error { mu.Lock(); defer mu.Unlock(); return answers["left"] }).WithContext(ctx).WithTimeout(patience).Should(MatchError(context.Canceled))
		held.release()
		writing.Wait()
		Expect(answers["before"]).To(Succeed())
		Expect(answers["after"]).To(Succeed())
		Expect(kept()).To(Equal([]string{"after", "before"}))
	})

	It("leave while another one of the same transaction is carried out", func(ctx SpecContext) {
		begun, goOn := make(chan struct{}), make(chan struct{})
		write(ctx, "slow", func(tx *gorm.DB) error {
			close(begun)
			<-goOn
			return count(tx, "slow", 0)
		})
		short, cancel := context.WithCancel(ctx)
		add(short, "left")
		held.release()
		Eventually(begun).WithContext(ctx).WithTimeout(patience).Should(BeClosed())
		cancel()
		Eventually(func() error { mu.Lock(); defer mu.Unlock(); return answers["left"] }).WithContext(ctx).WithTimeout(patience).Should(MatchError(context.Canceled))
		close(goOn)
		writing.Wait()
		Expect(answers["slow"]).To(Succeed())
		Expect(kept()).To(Equal([]string{"slow"}))
	})

	It("are answered as one when they cannot be committed", func(ctx SpecContext) {
		add(ctx, "one")
		write(ctx, "child", breakCommit)
		held.release()
		writing.Wait()
		Expect(answers).To(HaveEach(And(MatchError(oauth.ErrUnavailable), MatchError(HavePrefix("committing: ")))))
		Expect(kept()).To(BeEmpty())
		Expect(store.AddGrant(ctx, aGrant("next", 0), nil)).To(Succeed())
	})
})

// count writes a row that is easily told from others.
func count(tx *gorm.DB, name string, taken int) error {
	return tx.Create(&counterRow{Name: fmt.Appendf(nil, "%-32s", name), Taken: taken, EndsAt: then}).Error
}

// holding is a change that lasts.
type holding struct {
	release func()
	done    chan struct{}
}

func (h *holding) wait() { <-h.done }

// hold writes without the context of a node that ends before.
func hold(ctx context.Context, store *Store) *holding {
	GinkgoHelper()
	begun, goOn := make(chan struct{}), make(chan struct{})
	h := &holding{sync.OnceFunc(func() { close(goOn) }), make(chan struct{})}
	go func() {
		defer GinkgoRecover()
		defer close(h.done)
		Expect(store.UpdateGrant(context.WithoutCancel(ctx), digest(0), func(g *oauth.AccessGrant) error {
			close(begun)
			<-goOn
			g.Used(time.Now())
			return nil
		})).To(Succeed())
	}()
	DeferCleanup(func() { h.release(); h.wait() })
	Eventually(begun).WithContext(ctx).WithTimeout(patience).Should(BeClosed())
	return h
}

var _ = Describe("A transaction of the group", Label("H5"), func() {
	It("is not begun while somebody else writes, and is when they have finished", Label("N14"), func(ctx SpecContext) {
		directory := GinkgoT().TempDir()
		store := openIn(directory)
		Expect(store.writer.Exec("PRAGMA busy_timeout = 0").Error).To(Succeed())
		other, err := connect(connector{filepath.Join(directory, "oauth.db"), asItIs(filepath.Join(directory, "oauth.db"))}, 1)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(disconnect, other)
		busy := other.Begin()
		Expect(busy.Error).NotTo(HaveOccurred())
		for range 3 {
			Expect(store.AddGrant(ctx, aGrant("g", 1), nil)).To(unavailable())
		}
		Expect(busy.Rollback().Error).To(Succeed())
		Expect(store.AddGrant(ctx, aGrant("g", 1), nil)).To(Succeed())
	})

	It("has none begun in it, which would take it back", func(ctx SpecContext) {
		store := openIn(GinkgoT().TempDir())
		err := store.transaction(ctx, func(tx *gorm.DB) error { return tx.Begin().Error })
		Expect(err).To(MatchError(gorm.ErrInvalidTransaction))
	})
})

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Writes that wait at the same moment", Label("H5", "D30"), func() {
	var (
		d       *Database
		held    *holding
		answers map[string]error
		writing sync.WaitGroup
	)
	BeforeEach(func(ctx SpecContext) {
		d = openIn(GinkgoT().TempDir())
		Expect(add(ctx, d, "g")).To(Succeed())
		held, answers = hold(ctx, d), map[string]error{}
	})

	// write waits until the write has joined, so that they come in this order.
	var mu sync.Mutex
	write := func(ctx context.Context, name string, change func(tx *Tx) error) {
		GinkgoHelper()
		before := d.batcher.length()
		writing.Go(func() {
			defer GinkgoRecover()
			err := writeUnknown(ctx, d, change)
			mu.Lock()
			defer mu.Unlock()
			answers[name] = err
		})
		Eventually(d.batcher.length).WithContext(ctx).WithTimeout(BusyTimeout).Should(Equal(before + 1))
	}
	addCount := func(ctx context.Context, id string) {
		GinkgoHelper()
		write(ctx, id, func(tx *Tx) error { return count(tx, id, 0) })
	}
	kept := func() (names []string) {
		GinkgoHelper()
		Expect(d.Reader.Raw("SELECT name FROM counts ORDER BY name").Scan(&names).Error).To(Succeed())
		return names
	}

	It("share one commit", func(ctx SpecContext) {
		before, err := d.Grants.detector.currentVersion()
		Expect(err).NotTo(HaveOccurred())
		for i := range 20 {
			addCount(ctx, strconv.Itoa(i))
		}
		held.release()
		writing.Wait()
		Expect(answers).To(HaveLen(20))
		Expect(answers).To(HaveEach(BeNil()))
		after, err := d.Grants.detector.currentVersion()
		Expect(err).NotTo(HaveOccurred())
		Expect(after.commits() - before.commits()).To(BeEquivalentTo(2)) // the one that they waited for, and theirs
		Expect(kept()).To(HaveLen(20))
	})

	It("start the goroutine that carries them out when it has ended", func(ctx SpecContext) {
		held.release()
		held.wait()
		running := func() bool { d.batcher.mu.Lock(); defer d.batcher.mu.Unlock(); return d.batcher.running }
		for i := range 50 {
			Expect(d.Write(ctx, BusyTimeout, func(tx *Tx) error { return count(tx, strconv.Itoa(i), 0) })).To(Succeed())
			Eventually(running).WithContext(ctx).Should(BeFalse())
		}
	})

	It("see what the writes before them have changed", Label("I22"), func(ctx SpecContext) {
		const other = "other"
		held.release()
		held.wait()
		Expect(d.Write(ctx, BusyTimeout, func(tx *Tx) error { return insert(tx, &grant{id: other}) })).To(Succeed())
		Expect(ended(ctx, d, other)).To(BeFalse()) // it is cached
		held = hold(ctx, d)
		var ends atomic.Int32
		for i := range 5 {
			writing.Go(func() {
				defer GinkgoRecover()
				Expect(d.Write(ctx, BusyTimeout, func(tx *Tx) error {
					hasEnded, err := endIn(tx, other)
					if hasEnded {
						ends.Add(1)
					}
					return err
				})).To(Succeed())
			})
			Eventually(d.batcher.length).WithContext(ctx).WithTimeout(BusyTimeout).Should(Equal(i + 1))
		}
		held.release()
		writing.Wait()
		Expect(ends.Load()).To(BeEquivalentTo(1))
	})

	It("fail alone", func(ctx SpecContext) {
		refusal := errors.New("refused")
		addCount(ctx, "before")
		write(ctx, "refused", func(tx *Tx) error {
			Expect(count(tx, "refused", 0)).To(Succeed())
			return refusal
		})
		addCount(ctx, "after")
		addCount(ctx, "before") // a second time
		held.release()
		writing.Wait()
		Expect(answers["refused"]).To(MatchError(refusal))
		Expect(kept()).To(Equal([]string{"after", "before"}))
	})

	DescribeTable("run again beside a write that fails", func(ctx SpecContext, refused func(tx *Tx) error, runs int) {
		run := 0
		write(ctx, "before", func(tx *Tx) error {
			run++
			return count(tx, "before", 0)
		})
		write(ctx, "refused", func(tx *Tx) error { return errors.Join(refused(tx), errors.New("refused")) })
		addCount(ctx, "after")
		held.release()
		writing.Wait()
		Expect(answers["refused"]).To(MatchError("refused"))
		Expect(kept()).To(Equal([]string{"after", "before"}))
		Expect(run).To(Equal(runs))
	},
		Entry("when it has written something", func(tx *Tx) error { return count(tx, "refused", 0) }, 2),
		Entry("when it has written by a query", func(tx *Tx) error {
			return tx.Raw("INSERT INTO holds DEFAULT VALUES RETURNING number").Scan(new(int)).Error
		}, 2),
		Entry("but not when it has only read", func(tx *Tx) error {
			return tx.Raw("SELECT count(*) FROM counts").Scan(new(int)).Error
		}, 1),
		Entry("but not when all that it wrote existed", func(tx *Tx) error {
			Expect(count(tx, "before", 0)).NotTo(Succeed())
			return nil
		}, 1),
	)

	It("leave nothing in the cache of a write that fails, even when it has written nothing", func(ctx SpecContext) {
		refusal := errors.New("refused")
		before := d.batcher.length()
		writing.Go(func() {
			defer GinkgoRecover()
			Expect(d.Write(ctx, BusyTimeout, func(tx *Tx) error {
				tx.ChangedGrant("never", &grant{id: "never"})
				return refusal
			})).To(MatchError(refusal))
		})
		Eventually(d.batcher.length).WithContext(ctx).WithTimeout(BusyTimeout).Should(Equal(before + 1))
		addCount(ctx, "other")
		held.release()
		writing.Wait()
		_, err := lookup(ctx, d, "never")
		Expect(err).To(MatchError(sql.ErrNoRows))
	})

	It("panic alone", func(ctx SpecContext) {
		addCount(ctx, "before")
		length := d.batcher.length()
		writing.Go(func() {
			defer GinkgoRecover()
			Expect(func() {
				_ = writeUnknown(ctx, d, func(tx *Tx) error {
					Expect(tx.Exec("DELETE FROM counts").Error).To(Succeed())
					panic("a bug")
				})
			}).To(PanicWith("a bug"))
		})
		Eventually(d.batcher.length).WithContext(ctx).WithTimeout(BusyTimeout).Should(Equal(length + 1))
		addCount(ctx, "after")
		held.release()
		writing.Wait()
		Expect(answers).To(HaveEach(BeNil()))
		Expect(kept()).To(Equal([]string{"after", "before"}))
	})

	DescribeTable("go on without a write that ends the transaction",
		func(ctx SpecContext, result func(err error) error) {
			held.release()
			held.wait()
			Expect(d.Writer.Exec("CREATE TRIGGER full BEFORE INSERT ON counts WHEN new.taken = 7 BEGIN SELECT " +
				"RAISE(ROLLBACK, 'as if the disk were full'); END").Error).To(Succeed())
			held = hold(ctx, d)
			addCount(ctx, "before")
			write(ctx, "breaks", func(tx *Tx) error { return result(count(tx, "breaks", 7)) })
			addCount(ctx, "after")
			held.release()
			writing.Wait()
			Expect(answers["breaks"]).
				To(And(MatchError(oauth.ErrUnavailable), MatchError(ContainSubstring("as if the disk were full"))))
			Expect(answers["before"]).To(Succeed())
			Expect(answers["after"]).To(Succeed())
			Expect(kept()).To(Equal([]string{"after", "before"}))
		},
		Entry("and returns its error", func(err error) error { return unavailable("counting", err) }),
		Entry("and hides its error", func(error) error { return nil }),
	)

	It("end with their context, and leave the others alone", func(ctx SpecContext) {
		short, cancel := context.WithCancel(ctx)
		addCount(ctx, "before")
		addCount(short, "left")
		addCount(ctx, "after")
		cancel()
		Eventually(func() error {
			mu.Lock()
			defer mu.Unlock()
			return answers["left"]
		}).WithContext(ctx).WithTimeout(BusyTimeout).Should(MatchError(context.Canceled))
		held.release()
		writing.Wait()
		Expect(answers["before"]).To(Succeed())
		Expect(answers["after"]).To(Succeed())
		Expect(kept()).To(Equal([]string{"after", "before"}))
	})

	It("end with their context while another write of the same transaction runs", func(ctx SpecContext) {
		begun, goOn := make(chan struct{}), make(chan struct{})
		write(ctx, "slow", func(tx *Tx) error {
			close(begun)
			<-goOn
			return count(tx, "slow", 0)
		})
		short, cancel := context.WithCancel(ctx)
		addCount(short, "left")
		held.release()
		Eventually(begun).WithContext(ctx).WithTimeout(BusyTimeout).Should(BeClosed())
		cancel()
		Eventually(func() error {
			mu.Lock()
			defer mu.Unlock()
			return answers["left"]
		}).WithContext(ctx).WithTimeout(BusyTimeout).Should(MatchError(context.Canceled))
		close(goOn)
		writing.Wait()
		Expect(answers["slow"]).To(Succeed())
		Expect(kept()).To(Equal([]string{"slow"}))
	})

	It("are answered as one when they cannot be committed", func(ctx SpecContext) {
		addCount(ctx, "one")
		write(ctx, "child", breakCommit)
		held.release()
		writing.Wait()
		Expect(answers).To(HaveEach(And(MatchError(oauth.ErrUnavailable), MatchError(HavePrefix("committing: ")))))
		Expect(kept()).To(BeEmpty())
		Expect(d.Write(ctx, BusyTimeout, func(tx *Tx) error { return count(tx, "next", 0) })).To(Succeed())
	})
})

// writeUnknown writes a change that the cache cannot follow.
func writeUnknown(ctx context.Context, d *Database, change func(tx *Tx) error) error {
	return d.Write(ctx, BusyTimeout, func(tx *Tx) error {
		tx.ChangedUnknown()
		return change(tx)
	})
}

func count(tx *Tx, name string, taken int) error {
	err := tx.Exec("INSERT INTO counts VALUES (?, ?)", name, taken).Error
	if err == nil {
		tx.WroteRow()
	}
	return err
}

// breakCommit does what SQLite refuses only at the end.
func breakCommit(tx *Tx) error {
	return errors.Join(
		tx.Exec("CREATE TABLE children (parent TEXT REFERENCES counts (name) DEFERRABLE INITIALLY DEFERRED)").Error,
		tx.Exec("INSERT INTO children VALUES ('missing')").Error,
	)
}

var _ = Describe("A transaction of the write batcher", Label("H5"), func() {
	It("is not begun while another connection writes, and is when that has finished",
		Label("N14"), func(ctx SpecContext) {
			directory := GinkgoT().TempDir()
			d := openIn(directory)
			Expect(d.Writer.Exec("PRAGMA busy_timeout = 0").Error).To(Succeed())
			file := filepath.Join(directory, "oauth.db")
			other, err := connect(connector{file, dsn(file)}, 1)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(disconnect, other)
			busy := other.Begin()
			Expect(busy.Error).NotTo(HaveOccurred())
			for range 3 {
				Expect(add(ctx, d, "g")).To(MatchError(oauth.ErrUnavailable))
			}
			Expect(busy.Rollback().Error).To(Succeed())
			Expect(add(ctx, d, "g")).To(Succeed())
		})

	It("refuses a transaction in it, which would undo it", func(ctx SpecContext) {
		d := openIn(GinkgoT().TempDir())
		err := d.Write(ctx, BusyTimeout, func(tx *Tx) error { return tx.Begin().Error })
		Expect(err).To(MatchError(gorm.ErrInvalidTransaction))
	})
})

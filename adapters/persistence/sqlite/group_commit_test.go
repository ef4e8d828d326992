package sqlite

import (
	"context"
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
	write := func(ctx context.Context, name string, change func(tx *gorm.DB) error) {
		GinkgoHelper()
		before := waiting(d)()
		writing.Go(func() {
			defer GinkgoRecover()
			err := d.Write(ctx, BusyTimeout, change)
			mu.Lock()
			defer mu.Unlock()
			answers[name] = err
		})
		Eventually(waiting(d)).WithContext(ctx).WithTimeout(BusyTimeout).Should(Equal(before + 1))
	}
	addCount := func(ctx context.Context, id string) {
		GinkgoHelper()
		write(ctx, id, func(tx *gorm.DB) error { return count(tx, id, 0) })
	}
	kept := func() (names []string) {
		GinkgoHelper()
		Expect(d.Reader.Raw("SELECT name FROM counts ORDER BY name").Scan(&names).Error).To(Succeed())
		return names
	}

	It("share one commit", func(ctx SpecContext) {
		for i := range 20 {
			addCount(ctx, strconv.Itoa(i))
		}
		write(ctx, "child", breakCommit)
		held.release()
		writing.Wait()
		Expect(answers).To(HaveEach(MatchError(HavePrefix("committing: "))))
		Expect(kept()).To(BeEmpty())
	})

	It("see what the writes before them have changed", Label("I22"), func(ctx SpecContext) {
		const other = "other"
		held.release()
		held.wait()
		Expect(add(ctx, d, other)).To(Succeed())
		held = hold(ctx, d)
		var ends atomic.Int32
		for i := range 5 {
			writing.Go(func() {
				defer GinkgoRecover()
				Expect(d.Write(ctx, BusyTimeout, func(tx *gorm.DB) error {
					hasEnded, err := endIn(tx, other)
					if hasEnded {
						ends.Add(1)
					}
					return err
				})).To(Succeed())
			})
			Eventually(waiting(d)).WithContext(ctx).WithTimeout(BusyTimeout).Should(Equal(i + 1))
		}
		held.release()
		writing.Wait()
		Expect(ends.Load()).To(BeEquivalentTo(1))
	})

	It("fail alone", func(ctx SpecContext) {
		refusal := errors.New("refused")
		addCount(ctx, "before")
		write(ctx, "refused", func(tx *gorm.DB) error {
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

	It("panic alone", func(ctx SpecContext) {
		addCount(ctx, "before")
		length := waiting(d)()
		writing.Go(func() {
			defer GinkgoRecover()
			Expect(func() {
				_ = d.Write(ctx, BusyTimeout, func(tx *gorm.DB) error {
					Expect(tx.Exec("DELETE FROM counts").Error).To(Succeed())
					panic("a bug")
				})
			}).To(PanicWith("a bug"))
		})
		Eventually(waiting(d)).WithContext(ctx).WithTimeout(BusyTimeout).Should(Equal(length + 1))
		addCount(ctx, "after")
		held.release()
		writing.Wait()
		Expect(answers).To(HaveEach(BeNil()))
		Expect(kept()).To(Equal([]string{"after", "before"}))
	})

	DescribeTable("are undone together by one that ends the transaction",
		func(ctx SpecContext, result func(err error) error) {
			held.release()
			held.wait()
			Expect(d.Writer.Exec("CREATE TRIGGER full BEFORE INSERT ON counts WHEN new.taken = 7 BEGIN SELECT " +
				"RAISE(ROLLBACK, 'as if the disk were full'); END").Error).To(Succeed())
			held = hold(ctx, d)
			addCount(ctx, "before")
			write(ctx, "breaks", func(tx *gorm.DB) error { return result(count(tx, "breaks", 7)) })
			addCount(ctx, "after")
			held.release()
			writing.Wait()
			Expect(answers).To(HaveEach(MatchError(oauth.ErrUnavailable)))
			Expect(kept()).To(BeEmpty())
			Expect(d.Write(ctx, BusyTimeout, func(tx *gorm.DB) error { return count(tx, "next", 0) })).To(Succeed())
		},
		Entry("and returns its error", func(err error) error { return unavailable("counting", err) }),
		Entry("and hides its error", func(error) error { return nil }),
	)

	It("end with their context while another write of the same transaction runs", func(ctx SpecContext) {
		begun, goOn := make(chan struct{}), make(chan struct{})
		write(ctx, "slow", func(tx *gorm.DB) error {
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
})

// waiting returns how many changes wait.
func waiting(d *Database) func() int { return func() int { return len(d.groupCommit.waiting) } }

func count(tx *gorm.DB, name string, taken int) error {
	return tx.Exec("INSERT INTO counts VALUES (?, ?)", name, taken).Error
}

// breakCommit does what SQLite refuses only at the end.
func breakCommit(tx *gorm.DB) error {
	return errors.Join(
		tx.Exec("CREATE TABLE children (parent TEXT REFERENCES counts (name) DEFERRABLE INITIALLY DEFERRED)").Error,
		tx.Exec("INSERT INTO children VALUES ('missing')").Error,
	)
}

var _ = Describe("A shared transaction", Label("H5"), func() {
	It("is not begun while another connection writes, and is when that has finished",
		Label("N14"), func(ctx SpecContext) {
			directory := GinkgoT().TempDir()
			d := openIn(directory)
			Expect(d.Writer.Exec("PRAGMA busy_timeout = 0").Error).To(Succeed())
			file := filepath.Join(directory, "oauth.db")
			other, err := connect(file, 1, nil)
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
})

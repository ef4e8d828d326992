package sqlite

import (
	"context"
	"os"
	"runtime"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Gathering writes before a transaction", Label("H5"), func() {
	var writes *writeBatcher
	BeforeEach(func() {
		yield, err := newNetYield()
		Expect(err).NotTo(HaveOccurred())
		writes = &writeBatcher{yield: yield}
		DeferCleanup(runtime.GOMAXPROCS, runtime.GOMAXPROCS(1)) // so that nothing runs beside the spec
	})
	AfterEach(func() { _ = writes.yield.Close() })

	It("lets goroutines with new data from the network run first, where the last transaction had several writes", func() {
		first := 0
		for range 100 {
			in, out, err := os.Pipe()
			Expect(err).NotTo(HaveOccurred())
			began, arrived := make(chan struct{}), make(chan error, 1)
			go func() {
				close(began)
				_, err := in.Read(make([]byte, 1))
				arrived <- err
			}()
			<-began
			runtime.Gosched() // until it waits
			_, err = out.Write(make([]byte, 1))
			Expect(err).NotTo(HaveOccurred())
			writes.skipped = 0
			writes.gather(true)
			first += len(arrived)
			Expect(in.Close()).To(Succeed())
			Expect(out.Close()).To(Succeed())
		}
		Expect(first).To(BeNumerically(">", 90), "each 61st choice of Go's scheduler is another one")
	})

	It("pauses for a while where other goroutines keep every processor busy", Label("N14"), func(ctx SpecContext) {
		working, done := context.WithCancel(ctx)
		defer done()
		go func() {
			for working.Err() == nil {
				runtime.Gosched()
			}
		}()
		writes.gather(true)
		Expect(writes.skipped).To(Equal(skipAfter))
		for range skipAfter {
			writes.gather(true)
		}
		Expect(writes.skipped).To(BeZero())
	}, SpecTimeout(time.Minute))

	It("does not wait when the pipe is closed", func(SpecContext) {
		Expect(writes.yield.Close()).To(Succeed())
		writes.gather(true)
	}, SpecTimeout(time.Minute))
})

var _ = Describe("Waiting for the next write", Label("H5"), func() {
	var (
		woken chan struct{}
		ticks chan time.Time
		ended chan struct{}
	)
	BeforeEach(func() {
		woken, ticks, ended = make(chan struct{}), make(chan time.Time, 1), make(chan struct{})
		ticks <- time.Time{} // an old tick
	})
	begin := func() { go func() { defer close(ended); waitIdle(woken, ticks) }() }

	It("ends with the second tick after it began, and so never at once", func(ctx SpecContext) {
		begin()
		for range 2 {
			Expect(ended).NotTo(BeClosed())
			Eventually(func() int { return len(ticks) }).WithContext(ctx).Should(BeZero())
			ticks <- time.Time{}
		}
		Eventually(ended).WithContext(ctx).Should(BeClosed())
		Expect(ticks).To(BeEmpty())
	}, SpecTimeout(time.Minute))

	It("ends at once when a write arrives", func(ctx SpecContext) {
		begin()
		close(woken)
		Eventually(ended).WithContext(ctx).Should(BeClosed())
	}, SpecTimeout(time.Minute))
})

package persistence

import (
	"context"
	"os"
	"runtime"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Giving way before a transaction", Label("H5"), func() {
	var writes *group
	BeforeEach(func() {
		giving, err := newYield()
		Expect(err).NotTo(HaveOccurred())
		writes = &group{yield: giving}
		DeferCleanup(runtime.GOMAXPROCS, runtime.GOMAXPROCS(1)) // so that nobody goes on beside the spec
	})
	AfterEach(func() { _ = writes.yield.Close() })

	It("lets whoever something has arrived for go first, where several wrote together", func() {
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
			writes.crowded = 0
			writes.giveWay(true)
			first += len(arrived)
			Expect(in.Close()).To(Succeed())
			Expect(out.Close()).To(Succeed())
		}
		Expect(first).To(BeNumerically(">", 90), "each 61st choice of Go's scheduler is another one")
	})

	It("is given up for a while where others keep every processor busy", Label("N14"), func(ctx SpecContext) {
		working, done := context.WithCancel(ctx)
		defer done()
		go func() {
			for working.Err() == nil {
				runtime.Gosched()
			}
		}()
		writes.giveWay(true)
		Expect(writes.crowded).To(Equal(crowding))
		for range crowding {
			writes.giveWay(true)
		}
		Expect(writes.crowded).To(BeZero())
	}, SpecTimeout(time.Minute))

	It("waits for nobody when it is closed", func(SpecContext) {
		Expect(writes.yield.Close()).To(Succeed())
		writes.giveWay(true)
	}, SpecTimeout(time.Minute))
})

var _ = Describe("A rest of whoever writes", Label("H5"), func() {
	var (
		called chan struct{}
		late   chan time.Time
		rested chan struct{}
	)
	BeforeEach(func() {
		called, late, rested = make(chan struct{}), make(chan time.Time, 1), make(chan struct{})
		late <- time.Time{} // a tick from before
	})
	begin := func() { go func() { defer close(rested); rest(called, late) }() }

	It("ends with the second tick after it began, so that it is never short", func(ctx SpecContext) {
		begin()
		for range 2 {
			Expect(rested).NotTo(BeClosed())
			Eventually(func() int { return len(late) }).WithContext(ctx).Should(BeZero())
			late <- time.Time{}
		}
		Eventually(rested).WithContext(ctx).Should(BeClosed())
		Expect(late).To(BeEmpty())
	}, SpecTimeout(time.Minute))

	It("ends at once when somebody is about to write", func(ctx SpecContext) {
		begin()
		close(called)
		Eventually(rested).WithContext(ctx).Should(BeClosed())
	}, SpecTimeout(time.Minute))
})

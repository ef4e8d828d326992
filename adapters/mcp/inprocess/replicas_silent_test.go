package inprocess

import (
	"bytes"
	"net/http"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/seal"
)

// rotated are server secrets that can be replaced.
type rotated struct{ atomic.Pointer[[][]byte] }

func (r *rotated) Secrets() ([][]byte, error) { return *r.Load(), nil }

// deathLimit is how long a replica may be silent before its sessions count as lost.
const deathLimit = 10 * time.Second

var _ = Describe("Waiting for a silent replica", Label("R4", "R5"), func() {
	var bus *wire
	var holder, other *site
	var session string
	var ahead *atomic.Int64 // the clock of both
	var secrets []*rotated  // of each
	BeforeEach(func(ctx SpecContext) {
		bus, ahead, secrets = newWire(), new(atomic.Int64), nil
		clock := ahead
		holder, other = replicas(bus, func(o *Options) {
			own := new(rotated)
			own.Store(&[][]byte{make([]byte, 32)})
			secrets = append(secrets, own)
			o.Keys = seal.NewKeyRing(own)
			o.Now = func() time.Time { return time.Now().Add(time.Duration(clock.Load())) }
		})
		session = holder.session(ctx, alice)
	})

	silence := func(silent bool) {
		bus.set(func() { bus.silent[addressOf(holder.mcp.replica)] = silent })
	}
	post := func(ctx SpecContext) answer {
		GinkgoHelper()
		return other.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...)
	}

	It("is 503 while the owner pauses, and keeps the session", func(ctx SpecContext) {
		for range 2 {
			silence(true)
			paused := post(ctx)
			Expect(paused.StatusCode).To(Equal(http.StatusServiceUnavailable))
			Expect(paused.Header.Get("Retry-After")).NotTo(BeEmpty())
			silence(false)
			Expect(post(ctx).body).To(ContainSubstring("ran read"))
			ahead.Add(int64(deathLimit)) // a later pause is a separate one
		}
	})

	It("is 404 after a long silence while the bus works", func(ctx SpecContext) {
		silence(true)
		Expect(post(ctx).StatusCode).To(Equal(http.StatusServiceUnavailable))
		ahead.Add(int64(deathLimit))
		lasting := post(ctx)
		Expect(lasting.StatusCode).To(Equal(http.StatusNotFound))
		Expect(lasting.body).To(ContainSubstring("there is no such session"))
	})

	It("opens a stream again after a pause of the owner of any length", func(ctx SpecContext) {
		f := listen(ctx, other, session)
		silence(true)
		Expect(post(ctx).StatusCode).To(Equal(http.StatusServiceUnavailable))
		ahead.Add(int64(deathLimit))
		Eventually(f.lines).Should(BeClosed())
		Expect(holder.mcp.forwarder.Pending()).To(Equal(1), "its heartbeats are answered")
		silence(false)
		Eventually(holder.mcp.forwarder.Pending).Should(BeZero())
		listen(ctx, other, session)
	})

	It("is 503 for an owner without the new server secret", func(ctx SpecContext) {
		first, second := make([]byte, 32), bytes.Repeat([]byte{2}, 32)
		secrets[1].Store(&[][]byte{second, first})
		Expect(post(ctx).StatusCode).To(Equal(http.StatusServiceUnavailable))
		ahead.Add(int64(deathLimit))
		Expect(post(ctx).StatusCode).To(Equal(http.StatusServiceUnavailable))
		secrets[0].Store(&[][]byte{second, first})
		Expect(post(ctx).body).To(ContainSubstring("ran read"))
	})
})

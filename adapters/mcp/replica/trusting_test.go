package replica

import (
	"bytes"
	"fmt"
	"log/slog"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/seal"
)

var _ = Describe("Trust in messages of the bus", Label("R3"), func() {
	var owner *Forwarder
	BeforeEach(func() {
		owner = New(Options{
			Name:   "owner",
			Keys:   seal.NewKeyRing(seal.FixedSecrets{make([]byte, 32)}),
			Now:    time.Now,
			Logger: slog.New(slog.DiscardHandler),
		})
	})

	It("refuses messages that are not sealed with the server secret", func() {
		forged, err := frame{
			Kind: kindHeartbeat,
			ID:   "x",
			From: "other",
			At:   time.Now(),
		}.
			seal(seal.NewKeyRing(seal.FixedSecrets{bytes.Repeat([]byte{9}, 32)}), "owner")
		Expect(err).NotTo(HaveOccurred())
		answers := make(chan []byte, 1)
		for _, message := range [][]byte{forged, nil, []byte("{}"), bytes.Repeat([]byte("x"), 100)} {
			owner.receive(message, func(answer []byte) { answers <- answer })
			Expect(answers).To(Receive(Equal(notOpened)))
		}
	})

	It("answers other messages while a message of another replica waits", func() {
		waiting := &forwardedCall{id: "slow", peer: "other", ended: make(chan struct{})}
		owner.calls.add(waiting)
		waiting.mu.Lock()
		box, err := frame{
			Kind: kindPart,
			ID:   "x",
			From: "other",
			At:   time.Now(),
			Call: "slow",
			Part: &part{},
		}.
			seal(owner.Keys, "owner")
		Expect(err).NotTo(HaveOccurred())
		answers := make(chan []byte, 2)
		taken := make(chan struct{})
		go func() {
			owner.receive(box, func(answer []byte) { answers <- answer })
			close(taken)
		}()
		Eventually(taken).Should(BeClosed())
		owner.receive([]byte("forged"), func(answer []byte) { answers <- answer })
		Expect(answers).To(Receive(Equal(notOpened)), "before receive returned")
		waiting.mu.Unlock()
		Eventually(answers).Should(Receive())
	})

	It("remembers a call longer than its message is fresh", func() {
		var seen seenCalls
		start := time.Now()
		Expect(seen.first("a", start)).To(BeTrue())
		for after := time.Duration(0); after <= 2*freshness; after += time.Second {
			Expect(seen.first("a", start.Add(after))).To(BeFalse())
			Expect(seen.first(fmt.Sprint(after), start.Add(after))).To(BeTrue())
		}
		seen = seenCalls{}
		for i := range 1000 {
			seen.first(fmt.Sprint(i), start.Add(time.Duration(i)*freshness))
		}
		Expect(len(seen.newer) + len(seen.older)).To(BeNumerically("<", 10))
	})
})

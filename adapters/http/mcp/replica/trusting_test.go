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

var _ = Describe("Trusting what comes over the bus", Label("R3"), func() {
	var holder *Forwarder
	BeforeEach(func() {
		holder = New(Options{Name: "holder", Keys: seal.NewKeyRing(seal.FixedSecrets{make([]byte, 32)}), Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	})

	It("takes nothing that was not sealed with the server secret", func() {
		forged, err := frame{Kind: kindBeat, ID: "x", From: "other", At: time.Now()}.
			seal(seal.NewKeyRing(seal.FixedSecrets{bytes.Repeat([]byte{9}, 32)}), "holder")
		Expect(err).NotTo(HaveOccurred())
		answers := make(chan []byte, 1)
		for _, message := range [][]byte{forged, nil, []byte("{}"), bytes.Repeat([]byte("x"), 100)} {
			holder.receive(message, func(answer []byte) { answers <- answer })
			Expect(answers).To(Receive(Equal(unopened)))
		}
	})

	It("makes only a message of another replica wait, and no other message with it", func() {
		waiting := &forwardedCall{id: "slow", peer: "other", ended: make(chan struct{})}
		holder.calls.add(waiting)
		waiting.mu.Lock()
		box, err := frame{Kind: kindPart, ID: "x", From: "other", At: time.Now(), Call: "slow", Part: &part{}}.
			seal(holder.Keys, "holder")
		Expect(err).NotTo(HaveOccurred())
		answers := make(chan []byte, 2)
		taken := make(chan struct{})
		go func() {
			holder.receive(box, func(answer []byte) { answers <- answer })
			close(taken)
		}()
		Eventually(taken).Should(BeClosed())
		holder.receive([]byte("forged"), func(answer []byte) { answers <- answer })
		Expect(answers).To(Receive(Equal(unopened)), "before receive returned")
		waiting.mu.Unlock()
		Eventually(answers).Should(Receive())
	})

	It("remembers a call for longer than its message is fresh", func() {
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

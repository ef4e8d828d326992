package replica

import (
	"io"
	"net"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// slow is a client whose writes wait for a reader.
type slow struct {
	header http.Header
	io.Writer
}

func (s slow) Header() http.Header { return s.header }
func (slow) WriteHeader(int)       {}
func (slow) Flush()                {}

var _ = Describe("Writing the parts of a response", Label("R1"), func() {
	It("acknowledges a part when the client has read it, and writes none twice", func(ctx SpecContext) {
		reader, writer := net.Pipe()
		DeferCleanup(reader.Close)
		c := &forwardedCall{out: slow{http.Header{}, writer}, ended: make(chan struct{})}
		first := make(chan kind, 2)
		go func() { first <- c.writePart(part{}, []byte("first")) }()
		go func() { first <- c.writePart(part{}, []byte("first")) }() // of a call that this replica does not have
		Consistently(first, "50ms").ShouldNot(Receive())
		Expect(io.ReadFull(reader, make([]byte, 5))).To(Equal(5))
		Eventually(first).Should(Receive(Equal(kindDone)))
		Eventually(first).Should(Receive(Equal(kindDone)))
		Expect(c.parts).To(Equal(1))
		Expect(c.writePart(part{Number: 2}, nil)).To(Equal(kindGone), "one is missing")
		c.close()
		Expect(c.writePart(part{Number: 1}, nil)).To(Equal(kindGone), "a call that has ended takes no part")
	})
})

package response

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/message"
)

// unread is a response whose client reads only when it is released.
type unread struct {
	http.ResponseWriter
	begun, release chan struct{}
	once           sync.Once
	err            error
}

func newUnread() *unread {
	return &unread{ResponseWriter: httptest.NewRecorder(), begun: make(chan struct{}), release: make(chan struct{})}
}

func (u *unread) Write(p []byte) (int, error) {
	u.once.Do(func() { close(u.begun) })
	<-u.release
	if u.err != nil {
		return 0, u.err
	}
	return u.ResponseWriter.Write(p)
}

// Unwrap is called by http.ResponseController.
func (u *unread) Unwrap() http.ResponseWriter { return u.ResponseWriter }

func (u *unread) text() string { return u.ResponseWriter.(*httptest.ResponseRecorder).Body.String() }

var _ = Describe("A queue of events", Label("U22", "U25"), func() {
	var (
		to      *unread
		queue   *Queue
		request *http.Request
		wrote   string
	)
	open := func(memory *message.BodyMemory) {
		to, wrote = newUnread(), ""
		queue, request = NewQueue(to, httptest.NewRequest(http.MethodGet, "/", nil), memory.Reserve("ann"),
			func(p []byte) { wrote += string(p) })
	}
	write := func(text string) error {
		_, err := queue.Write([]byte(text))
		return errors.Join(err, queue.FlushError())
	}
	BeforeEach(func() { open(message.NewBodyMemory(256 << 20)) })

	It("takes events while the client does not read, and sends them in order", func() {
		Expect(write("a\n\n")).To(Succeed())
		<-to.begun
		Expect(write("b\n\n")).To(Succeed())
		Expect(write(strings.Repeat("x", maxBehind+1))).To(Succeed(), "a long event, while the client is not behind")
		close(to.release)
		queue.Close()
		Expect(to.text() == "a\n\nb\n\n"+strings.Repeat("x", maxBehind+1)).To(BeTrue())
		Expect(wrote == to.text()).To(BeTrue())
		Expect(write("late")).To(MatchError(errClosed))
	})

	It("ends the request of a client that is too far behind, and counts only what was sent", func() {
		Expect(write("a\n\n")).To(Succeed())
		<-to.begun
		Expect(write(strings.Repeat("x", maxBehind))).To(Succeed())
		Expect(write("b\n\n")).To(MatchError(errBehind))
		Expect(request.Context().Done()).To(BeClosed())
		close(to.release)
		queue.Close()
		Expect(wrote).To(Equal("a\n\n"))
	})

	It("uses the memory of its person until it is empty", Label("G19"), func() {
		memory := message.NewBodyMemory(8 << 20)
		open(memory)
		long, other := strings.Repeat("x", 1<<20), memory.Reserve("ann")
		Expect(write(long)).To(Succeed())
		<-to.begun
		Expect(other.Extend(1 << 20)).To(MatchError(message.ErrNoMemory))
		close(to.release)
		Eventually(func() error { return other.Extend(1 << 20) }).Should(Succeed())
		Expect(write(long)).To(MatchError(errBehind), "the other one uses the quarter of a person")
		queue.Close()
	})

	It("ends the request when a write fails", func() {
		to.err = errors.New("broken pipe")
		close(to.release)
		Expect(write("a\n\n")).To(Succeed())
		Eventually(request.Context().Done()).Should(BeClosed())
		Expect(write("b\n\n")).To(MatchError(to.err))
		queue.Close()
		Expect(wrote).To(BeEmpty())
	})
})

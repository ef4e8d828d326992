package response

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
	"github.com/pasteport/pasteport/domain/oauth"
)

// clocked is a recorder that knows until when its connection may be read from.
type clocked struct {
	*httptest.ResponseRecorder
	until []time.Time
}

// SetReadDeadline is what http.ResponseController calls.
func (c *clocked) SetReadDeadline(until time.Time) error {
	c.until = append(c.until, until)
	return nil
}

func (o *OpenSet) listening() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for s := range o.streams {
		s.mu.Lock()
		listens := s.listens
		s.mu.Unlock()
		if listens {
			return true
		}
	}
	return false
}

var _ = Describe("Waiting for a body", Label("G13"), func() {
	var s *Writer
	var to *clocked
	deadlines := func() []time.Time {
		s.mu.Lock()
		defer s.mu.Unlock()
		return to.until
	}
	pass := func(ticks int) {
		for range ticks {
			s.set.pulse()
		}
	}
	BeforeEach(func() {
		g := NewOpenSet(Options{Authorization: judge{errors.New("down")}, Now: time.Now})
		g.ticking = true
		r := httptest.NewRequest(http.MethodPost, "/mcp", http.NoBody)
		to = &clocked{ResponseRecorder: httptest.NewRecorder()}
		s, _ = g.NewWriter(to, r, r.Context())
		g.open(s, &Identity{Sender: Sender{Caller: oauth.Caller{Grant: "A"}}})
		DeferCleanup(s.Finish)
	})

	It("ends after a while, and for this body only", func() {
		s.listen()
		pass(int(bodyLimit/time.Second) - 1)
		Consistently(deadlines, "20ms").Should(BeEmpty())
		pass(1)
		Eventually(deadlines).Should(ConsistOf(BeTemporally("~", time.Now(), time.Second)))
		s.heard(nil) // at the last moment
		Expect(deadlines()).To(HaveExactElements(Not(BeZero()), BeZero()))
	})

	It("ends for a client that stalls, with an answer and without the connection", func(ctx SpecContext) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			out, _ := s.set.NewWriter(w, r, r.Context())
			defer out.Finish()
			out.Identify("", oauth.Caller{Grant: "A"}, oauth.HostToken{})
			if _, err := out.ReadBody(100, jsonrpc.NewBodyMemory(1<<10)); err != nil {
				out.WriteHeader(http.StatusBadRequest)
			}
		}))
		DeferCleanup(server.Close)
		client, err := new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(client.Close)
		Expect(client.SetReadDeadline(time.Now().Add(5 * time.Second))).To(Succeed())
		_, err = fmt.Fprint(client, "POST / HTTP/1.1\r\nHost: cms.example\r\nContent-Length: 100\r\n\r\n{")
		Expect(err).NotTo(HaveOccurred())
		Eventually(s.set.listening).WithContext(ctx).WithTimeout(10 * time.Second).Should(BeTrue())
		pass(int(bodyLimit / time.Second))
		answer, err := http.ReadResponse(bufio.NewReader(client), nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.StatusCode).To(Equal(http.StatusBadRequest))
		Expect(answer.Close).To(BeTrue())
	}, SpecTimeout(10*time.Second))

	It("ends for a client that is refused before it", func() {
		r := httptest.NewRequest(http.MethodPost, "/mcp", bytes.NewReader([]byte("{")))
		refused, _ := s.set.NewWriter(to, r, r.Context())
		refused.Finish()
		Expect(to.until).To(ConsistOf(BeTemporally("~", time.Now().Add(bodyLimit), time.Second)))
	})

	It("is no matter when there is none", func() {
		for _, body := range []io.Reader{nil, http.NoBody} {
			r := httptest.NewRequest(http.MethodGet, "/mcp", body)
			refused, _ := s.set.NewWriter(to, r, r.Context())
			refused.Finish()
		}
		Expect(to.until).To(BeEmpty())
	})

	It("costs a connection nothing when the body comes in time", func() {
		s.listen()
		s.heard(nil)
		pass(2 * int(bodyLimit/time.Second))
		Consistently(deadlines, "20ms").Should(BeEmpty())
		s.request.Body = &s.body
		s.Finish()
		Expect(deadlines()).To(BeEmpty())
	})
})

package stream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/oauth"
)

// readDeadlines is a recorder of responses and of read deadlines.
type readDeadlines struct {
	*httptest.ResponseRecorder
	until []time.Time
}

// SetReadDeadline is called by http.ResponseController.
func (c *readDeadlines) SetReadDeadline(until time.Time) error {
	c.until = append(c.until, until)
	return nil
}

var _ = Describe("Waiting for a body", Label("G13"), func() {
	var s *Writer
	var to *readDeadlines
	BeforeEach(func() {
		g := NewRegistry(Options{Authorization: verdict{errors.New("down")}, Now: time.Now})
		g.BodyLimit = 50 * time.Millisecond
		r := httptest.NewRequest(http.MethodPost, "/mcp", http.NoBody)
		to = &readDeadlines{ResponseRecorder: httptest.NewRecorder()}
		s, _ = g.NewWriter(to, r, r.Context())
		s.Identify(&Identity{Sender: Sender{Caller: oauth.Caller{Grant: "A"}}})
		DeferCleanup(s.Finish)
	})

	It("answers a client that stalls, and closes the connection", func(ctx SpecContext) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			out, _ := s.registry.NewWriter(w, r, r.Context())
			defer out.Finish()
			out.Identify(&Identity{Sender: Sender{Caller: oauth.Caller{Grant: "A"}}})
			if _, err := out.ReadBody(100, message.NewBodyMemory(1<<10)); err != nil {
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
		answer, err := http.ReadResponse(bufio.NewReader(client), nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.StatusCode).To(Equal(http.StatusBadRequest))
		Expect(answer.Close).To(BeTrue())
	}, SpecTimeout(10*time.Second))

	It("is limited for a client that was refused before its body was read", func() {
		r := httptest.NewRequest(http.MethodPost, "/mcp", bytes.NewReader([]byte("{")))
		refused, _ := s.registry.NewWriter(to, r, r.Context())
		refused.Finish()
		Expect(to.until).To(ConsistOf(BeTemporally("~", time.Now().Add(refused.registry.BodyLimit), time.Second)))
	})
})

package mcp

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

func (g *registry) listening() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for s := range g.streams {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.listens
	}
	return false
}

var _ = Describe("Waiting for a body", Label("G13"), func() {
	var s *stream
	var to *clocked
	deadlines := func() []time.Time {
		s.mu.Lock()
		defer s.mu.Unlock()
		return to.until
	}
	pass := func(ticks int) {
		for range ticks {
			s.registry.pulse()
		}
	}
	BeforeEach(func() {
		g := newRegistry(&Server{options: Options{Authorization: judge{errors.New("down")}}.withDefaults()})
		g.ticking = true
		r := httptest.NewRequest(http.MethodPost, "/mcp", http.NoBody)
		to = &clocked{ResponseRecorder: httptest.NewRecorder()}
		s, _ = g.answer(to, r, r.Context())
		g.open(s, &identity{sender: sender{caller: oauth.Caller{Grant: "A"}}})
		DeferCleanup(s.finish)
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

	It("ends for whoever stalls in it, with an answer and without the connection", func(ctx SpecContext) {
		site := openSite()
		client, err := new(net.Dialer).DialContext(ctx, "tcp", site.Listener.Addr().String())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(client.Close)
		Expect(client.SetReadDeadline(time.Now().Add(5 * time.Second))).To(Succeed())
		_, err = fmt.Fprintf(client, "POST /mcp HTTP/1.1\r\nHost: cms.example\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", alice)
		Expect(err).NotTo(HaveOccurred())
		Eventually(site.mcp.streams.listening).WithContext(ctx).WithTimeout(10 * time.Second).Should(BeTrue())
		for range bodyLimit / time.Second {
			site.mcp.streams.pulse()
		}
		answer, err := http.ReadResponse(bufio.NewReader(client), nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.StatusCode).To(Equal(http.StatusBadRequest))
		Expect(answer.Close).To(BeTrue())
	}, SpecTimeout(10*time.Second))

	It("ends for whoever is turned away before it", func() {
		r := httptest.NewRequest(http.MethodPost, "/mcp", bytes.NewReader([]byte("{")))
		refused, _ := s.registry.answer(to, r, r.Context())
		refused.finish()
		Expect(to.until).To(ConsistOf(BeTemporally("~", time.Now().Add(bodyLimit), time.Second)))
	})

	It("is no matter when there is none", func() {
		for _, body := range []io.Reader{nil, http.NoBody} {
			r := httptest.NewRequest(http.MethodGet, "/mcp", body)
			refused, _ := s.registry.answer(to, r, r.Context())
			refused.finish()
		}
		Expect(to.until).To(BeEmpty())
	})

	It("costs a connection nothing when the body comes in time", func() {
		s.listen()
		s.heard(nil)
		pass(2 * int(bodyLimit/time.Second))
		Consistently(deadlines, "20ms").Should(BeEmpty())
		s.request.Body = &s.body
		s.finish()
		Expect(deadlines()).To(BeEmpty())
	})
})

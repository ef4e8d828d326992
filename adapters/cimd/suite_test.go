package cimd

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	fetching "github.com/pasteport/pasteport/adapters/limits"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

func TestClientMetadataDocuments(t *testing.T) {
	SetDefaultEventuallyTimeout(20 * time.Second)
	suite.Run(t, "Client metadata documents")
}

// site is a client's web site: a TLS server on loopback that counts its requests.
type site struct {
	*httptest.Server
	connections, fetches atomic.Int32
	answer               http.HandlerFunc // a valid document by default
}

func newSite() *site {
	s := &site{}
	s.answer = s.publish
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.fetches.Add(1)
		s.answer(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	s.Config.ErrorLog = quiet
	s.EnableHTTP2 = true
	s.StartTLS()
	DeferCleanup(s.Close)
	return s
}

// publish answers with the document that belongs to the requested URL.
func (s *site) publish(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, document("https://"+r.Host+r.RequestURI))
}

// respond sets the response to all requests; headers are name, value, name, value.
func (s *site) respond(status int, body string, headers ...string) {
	s.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func (s *site) client(path string) oauth.ClientID { return oauth.RestoreClientID(s.URL + path) }

func (s *site) roots() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return roots
}

func document(id string, more ...string) string {
	members := fmt.Sprintf(`"client_id":%q,"client_name":"Reader","redirect_uris":["https://app.example/done"]`, id)
	for _, member := range more {
		members += "," + member
	}
	return "{" + members + "}"
}

// handClock is a clock that specs set.
type handClock struct{ at atomic.Pointer[time.Time] }

func newClock() *handClock {
	c := &handClock{}
	start := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	c.at.Store(&start)
	return c
}

func (c *handClock) now() time.Time { return *c.at.Load() }

func (c *handClock) advance(by time.Duration) {
	next := c.now().Add(by)
	c.at.Store(&next)
}

// patient are limits that no response on loopback exceeds.
func patient() limits {
	l := defaultLimits
	l.dial, l.handshake, l.header, l.fetch = time.Minute, time.Minute, time.Minute, time.Minute
	return l
}

// openDirectory opens a directory with the default limits on fetches, unless the options have some.
func openDirectory(o Config, l limits) *Directory {
	if o.Fetches == nil {
		o.Fetches = fetching.NewRates()
	}
	return newDirectory(o, l)
}

// fill takes all slots of a directory, and shortens the wait for one.
func fill(ctx context.Context, d *Directory) (leave func()) {
	GinkgoHelper()
	wait := d.limits.wait
	d.limits.wait = 20 * time.Millisecond
	Expect(d.slots.Acquire(ctx, d.limits.slots)).To(Succeed())
	return func() {
		d.slots.Release(d.limits.slots)
		d.limits.wait = wait
	}
}

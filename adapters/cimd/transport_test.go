package cimd

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

var _ = Describe("Connecting to a client's site", func() {
	var (
		publisher *site
		options   Config
		bounds    limits
	)

	BeforeEach(func() {
		publisher, bounds = newSite(), patient()
		options = Config{Now: newClock().now, RootCAs: publisher.roots(), AllowLoopback: true}
	})

	ask := func(ctx context.Context, id oauth.ClientID) error {
		_, err := openDirectory(options, bounds).Client(ctx, id, "")
		return err
	}
	named := func(host string) oauth.ClientID {
		return oauth.RestoreClientID("https://" + host + ":" + portOf(publisher) + "/client.json")
	}

	DescribeTable("never connects to loopback outside development", Label("C17", "C48", "C49"),
		func(ctx SpecContext, host string) {
			options.AllowLoopback = false
			options.Ports = []uint16{netip.MustParseAddrPort(publisher.Listener.Addr().String()).Port()}
			options.Resolver = newNameServer("127.0.0.1").resolver()
			Expect(ask(ctx, named(host))).
				To(And(MatchError(client.ErrUnreachable), MatchError(ContainSubstring("prohibited IP address"))))
			Expect(publisher.connections.Load()).To(BeZero())
		},
		Entry("when the client_id has its address", "127.0.0.1"),
		Entry("when a public name resolves to it", "example.com"),
	)

	It("checks each address that a name resolves to", Label("C17", "N7"), func(ctx SpecContext) {
		options.Resolver = newNameServer("169.254.169.254", "10.0.0.1").resolver()
		Expect(ask(ctx, named("example.com"))).To(MatchError(ContainSubstring("prohibited IP address")))
		options.Resolver = newNameServer("169.254.169.254", "10.0.0.1", "127.0.0.1").resolver()
		Expect(ask(ctx, named("example.com"))).To(Succeed())
	})

	DescribeTable("checks a name again that was rebound after a fetch", Label("C17", "N7", "C51"),
		func(ctx SpecContext, first, id string, connect func()) {
			connect()
			clock, answer := newClock(), atomic.Pointer[[]string]{}
			answer.Store(&[]string{first})
			options.Now, options.Resolver = clock.now, newRebindingNameServer(func() []string {
				return *answer.Load()
			}).resolver()
			directory := openDirectory(options, bounds)
			if id == "" {
				id = named("example.com").String()
			}
			Expect(directory.Client(ctx, oauth.RestoreClientID(id), "")).NotTo(BeNil())
			clock.advance(time.Minute)
			answer.Store(&[]string{"10.0.0.1"})
			Expect(directory.Client(ctx, oauth.RestoreClientID(id), "")).Error().
				To(MatchError(ContainSubstring("prohibited IP address")))
		},
		Entry("over a connection of its own", "127.0.0.1", "", func() {}),
		Entry("through a proxy", "1.1.1.1", "https://example.com/client.json", func() {
			options.AllowLoopback = false
			options.Proxy = newConnectProxy(publisher, (*httptest.Server).Start).at(nil)
			publisher.respond(http.StatusOK, document("https://example.com/client.json"))
		}),
	)

	It("fails when the certificate is for another name", Label("C16"), func(ctx SpecContext) {
		options.Resolver = newNameServer("127.0.0.1").resolver()
		Expect(ask(ctx, named("another.example"))).To(MatchError(client.ErrUnreachable))
		Expect(publisher.fetches.Load()).To(BeZero())
	})

	It("fails on an untrusted certificate", Label("C16"), func(ctx SpecContext) {
		options.RootCAs = nil
		Expect(ask(ctx, publisher.client("/client.json"))).To(MatchError(client.ErrUnreachable))
		Expect(publisher.fetches.Load()).To(BeZero())
	})

	It("requires TLS 1.2 and ignores proxies of the environment", Label("C16"), func() {
		transport := newTransport(options, bounds)
		Expect(transport.TLSClientConfig.MinVersion).To(BeEquivalentTo(tls.VersionTLS12))
		Expect(transport.Proxy).To(BeNil())
	})

	DescribeTable("fails when the header is larger than 8 KiB, over", Label("C15", "N6"),
		func(ctx SpecContext, protocols ...string) {
			publisher.TLS.NextProtos = protocols
			publisher.respond(http.StatusOK, document(publisher.client("/client.json").String()), "X-Padding",
				strings.Repeat("x", 9<<10))
			Expect(ask(ctx, publisher.client("/client.json"))).To(MatchError(client.ErrUnreachable))
		},
		Entry("HTTP/1.1", "http/1.1"), Entry("HTTP/2", "h2"),
	)

	It("times out when the TLS handshake stalls", Label("C15"), func(ctx SpecContext) {
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(silent.Close)
		bounds.handshake = 20 * time.Millisecond
		Expect(ask(ctx, oauth.RestoreClientID("https://"+silent.Addr().String()+"/client.json"))).
			To(MatchError(client.ErrUnreachable))
	}, SpecTimeout(10*time.Second))

	It("fails when DNS does not answer", Label("C15"), func(ctx SpecContext) {
		silent, err := net.ListenPacket("udp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(silent.Close)
		options.Resolver = nameServer{silent}.resolver()
		bounds.dial = 20 * time.Millisecond
		Expect(ask(ctx, named("example.com"))).To(MatchError(client.ErrUnreachable))
	}, SpecTimeout(10*time.Second))
})

func portOf(s *site) string {
	address, err := url.Parse(s.URL)
	Expect(err).NotTo(HaveOccurred())
	return address.Port()
}

// nameServer is a DNS server on loopback.
type nameServer struct{ net.PacketConn }

// newNameServer answers every query for IPv4 addresses with the given ones.
func newNameServer(addresses ...string) nameServer {
	return newRebindingNameServer(func() []string { return addresses })
}

// newRebindingNameServer answers each query with the current result of addresses.
func newRebindingNameServer(addresses func() []string) nameServer {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(conn.Close)
	go func() {
		for buffer := make([]byte, 512); ; {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(resolve(buffer[:n], addresses()), from)
		}
	}()
	return nameServer{conn}
}

func (s nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", s.LocalAddr().String())
	}}
}

func resolve(question []byte, addresses []string) []byte {
	var message dnsmessage.Message
	if message.Unpack(question) != nil || len(message.Questions) != 1 {
		return nil
	}
	asked := message.Questions[0]
	message.Response, message.RecursionAvailable, message.Additionals = true, true, nil
	for _, address := range addresses {
		if asked.Type == dnsmessage.TypeA {
			header := dnsmessage.ResourceHeader{Name: asked.Name, Class: dnsmessage.ClassINET, TTL: 1}
			message.Answers = append(message.Answers,
				dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: netip.MustParseAddr(address).As4()}})
		}
	}
	answer, _ := message.Pack()
	return answer
}

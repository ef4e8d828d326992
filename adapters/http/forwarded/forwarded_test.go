package forwarded_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/http/forwarded"
	"github.com/pasteport/pasteport/features/suite"
)

func TestForwarded(t *testing.T) { suite.Run(t, "The addresses of clients behind proxies") }

// proxies are trusted in these specs. The peer is 10.0.0.1, which is one of them.
var proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}

func from(peer string, header http.Header) string {
	return forwarded.Extractor{Proxies: proxies,
		Logger: slog.New(slog.DiscardHandler)}.IPExtractor()(&http.Request{RemoteAddr: peer, Header: header})
}

func xff(values ...string) http.Header { return http.Header{"X-Forwarded-For": values} }

func rfc7239(values ...string) http.Header { return http.Header{"Forwarded": values} }

var _ = Describe("The address of a client", Label("B6"), func() {
	DescribeTable("is read from", func(header http.Header, address string) {
		Expect(from("10.0.0.1:4711", header)).To(Equal(address))
	},
		Entry("the peer without a header", http.Header{}, "10.0.0.1"),
		Entry("an IPv4 address", xff("203.0.113.7"), "203.0.113.7"),
		Entry("an IPv4 address with a port", xff("203.0.113.7:5555"), "203.0.113.7"),
		Entry("an IPv6 address", xff("2001:db8::7"), "2001:db8::7"),
		Entry("an IPv6 address in brackets", xff("[2001:db8::7]"), "2001:db8::7"),
		Entry("an IPv6 address in brackets with a port", xff("[2001:db8::7]:5555"), "2001:db8::7"),
		Entry("an IPv6 address in capitals, written out", xff("2001:0DB8:0:0:0:0:0:7"), "2001:db8::7"),
		Entry("an IPv6 address with a zone", xff("fe80::7%eth0"), "fe80::7"),
		Entry("an IPv6 address with a zone, brackets and a port", xff("[fe80::7%eth0]:80"), "fe80::7"),
		Entry("an IPv4 address in IPv6", xff("::ffff:203.0.113.7"), "203.0.113.7"),
		Entry("an IPv4 address in IPv6 with a port", xff("[::ffff:203.0.113.7]:80"), "203.0.113.7"),
		Entry("an address in quotes", xff(`"203.0.113.7"`), "203.0.113.7"),
		Entry("an address in quotes with brackets and a port", xff(`"[2001:db8::7]:80"`), "2001:db8::7"),
		Entry("an address among spaces and tabs", xff(" \t203.0.113.7 \t"), "203.0.113.7"),
		Entry("the last of several that is not a proxy", xff("198.51.100.1, 203.0.113.7, 10.1.2.3"), "203.0.113.7"),
		Entry("the last of several with ports", xff("198.51.100.1:1,203.0.113.7:2,10.1.2.3:3"), "203.0.113.7"),
		Entry("the last of several headers", xff("198.51.100.1", "203.0.113.7"), "203.0.113.7"),
		Entry("the first when all are proxies", xff("10.9.9.9, 10.1.2.3"), "10.9.9.9"),
		Entry("the entry before a proxy in IPv6", xff("203.0.113.7, [2001:db8:1::2]:443"), "203.0.113.7"),
		Entry("the peer when it has written nothing", xff("203.0.113.7, "), "10.0.0.1"),
		Entry("the peer when the header is empty", xff(""), "10.0.0.1"),
		Entry("an entry after rubbish of the client", xff("<script>, 203.0.113.7"), "203.0.113.7"),
		Entry("the proxy that has written unknown", xff("203.0.113.7, unknown, 10.1.2.3"), "10.1.2.3"),
		Entry("the peer when it has written rubbish", xff("203.0.113.7, 203.0.113.300"), "10.0.0.1"),
		Entry("the peer when it has written zeros before", xff("203.0.113.007"), "10.0.0.1"),
		Entry("the peer when a bracket is missing", xff("[2001:db8::7"), "10.0.0.1"),
		Entry("the peer when a quote is missing", xff(`"203.0.113.7`), "10.0.0.1"),
		Entry("the peer when the port is none", xff("203.0.113.7:http"), "10.0.0.1"),
		Entry("Forwarded", rfc7239("for=203.0.113.7"), "203.0.113.7"),
		Entry("Forwarded with a port and other parameters",
			rfc7239(`proto=https; For="203.0.113.7:47011" ;by=10.0.0.1`), "203.0.113.7"),
		Entry("Forwarded in IPv6", rfc7239(`for="[2001:db8::7]:47011"`), "2001:db8::7"),
		Entry("the last element of Forwarded that is not a proxy",
			rfc7239(`for=198.51.100.1, for="203.0.113.7";proto=http`, "for=10.1.2.3"), "203.0.113.7"),
		Entry("Forwarded with separators in quotes", rfc7239(`for=203.0.113.7;host="a,b;for=198.51.100.1\""`),
			"203.0.113.7"),
		Entry("the peer when Forwarded says unknown", rfc7239("for=unknown"), "10.0.0.1"),
		Entry("the peer when Forwarded has an obfuscated identifier", rfc7239(`for="_gazonk"`), "10.0.0.1"),
		Entry("the peer when an element of Forwarded has no for parameter", rfc7239("for=203.0.113.7, proto=https"),
			"10.0.0.1"),
		Entry("X-Forwarded-For when both are there",
			http.Header{"X-Forwarded-For": {"203.0.113.7"}, "Forwarded": {"for=198.51.100.1"}}, "203.0.113.7"),
	)

	It("is the peer's where the peer is not a proxy", func() {
		Expect(from("192.0.2.1:80", xff("203.0.113.7"))).To(Equal("192.0.2.1"))
		Expect(from("[2001:db8:2::1]:80", rfc7239("for=203.0.113.7"))).To(Equal("2001:db8:2::1"))
	})

	It("is what the server says of a peer that has no address", func() {
		Expect(from("@", xff("203.0.113.7"))).To(Equal("@"))
	})

	It("warns once, with the beginning of what cannot be read", func() {
		var log bytes.Buffer
		read := forwarded.Extractor{Proxies: proxies, Logger: slog.New(slog.NewTextHandler(&log, nil))}.IPExtractor()
		for _, entry := range []string{"203.0.113.7", strings.Repeat("x", 100), "unknown"} {
			read(&http.Request{RemoteAddr: "10.0.0.1:80", Header: xff(entry)})
		}
		Expect(strings.Count(log.String(), "\n")).To(Equal(1))
		Expect(log.String()).
			To(And(ContainSubstring("proxy=10.0.0.1 entry="+strings.Repeat("x", 64)+"\n"),
				ContainSubstring("level=WARN")))
	})
})

var _ = Describe("A proxy that is not listed", Label("B6"), func() {
	It("is named once in the log", func() {
		var log bytes.Buffer
		extract := forwarded.Extractor{Proxies: proxies, Logger: slog.New(slog.NewTextHandler(&log, nil))}.IPExtractor()
		for _, header := range []http.Header{{}, xff("203.0.113.7"), rfc7239("for=203.0.113.7")} {
			Expect(extract(&http.Request{RemoteAddr: "192.0.2.1:4711", Header: header})).To(Equal("192.0.2.1"))
			Expect(extract(&http.Request{RemoteAddr: "10.0.0.1:4711", Header: header})).NotTo(BeEmpty())
		}
		Expect(strings.Count(log.String(), "level=WARN")).To(Equal(1))
		Expect(log.String()).To(And(ContainSubstring("trusted-proxies"), ContainSubstring("peer=192.0.2.1")))
	})
})

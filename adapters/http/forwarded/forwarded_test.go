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
	It("is the last in X-Forwarded-For that is not a proxy, in any spelling, and else the peer's", func() {
		for _, read := range [][2]string{
			{`203.0.113.7:5555`, "203.0.113.7"}, {`"203.0.113.7"`, "203.0.113.7"},
			{" \t203.0.113.7 \t", "203.0.113.7"}, {`2001:0DB8:0:0:0:0:0:7`, "2001:db8::7"},
			{`[2001:db8::7]`, "2001:db8::7"}, {`"[2001:db8::7]:80"`, "2001:db8::7"}, {`fe80::7%eth0`, "fe80::7"},
			{`[fe80::7%eth0]:80`, "fe80::7"}, {`[::ffff:203.0.113.7]:80`, "203.0.113.7"},
			{`198.51.100.1:1,203.0.113.7:2,10.1.2.3:3`, "203.0.113.7"}, {`10.9.9.9, 10.1.2.3`, "10.9.9.9"},
			{`203.0.113.7, [2001:db8:1::2]:443`, "203.0.113.7"}, {`<script>, 203.0.113.7`, "203.0.113.7"},
			{`203.0.113.7, unknown, 10.1.2.3`, "10.1.2.3"}, {`203.0.113.7, `, "10.0.0.1"}, {``, "10.0.0.1"},
			{`203.0.113.7, 203.0.113.300`, "10.0.0.1"}, {`203.0.113.007`, "10.0.0.1"}, {`[2001:db8::7`, "10.0.0.1"},
			{`"203.0.113.7`, "10.0.0.1"}, {`203.0.113.7:http`, "10.0.0.1"},
		} {
			Expect(from("10.0.0.1:4711", xff(read[0]))).To(Equal(read[1]), read[0])
		}
		Expect(from("10.0.0.1:4711", xff("198.51.100.1", "203.0.113.7"))).To(Equal("203.0.113.7"))
		Expect(from("192.0.2.1:80", xff("203.0.113.7"))).To(Equal("192.0.2.1"), "no proxy")
		Expect(from("@", xff("203.0.113.7"))).To(Equal("@"), "a peer without an address")
	})

	It("is read from Forwarded in the same way, if that is the only header", func() {
		for _, read := range [][2]string{
			{`proto=https; For="203.0.113.7:47011" ;by=10.0.0.1`, "203.0.113.7"},
			{`for="[2001:db8::7]:47011"`, "2001:db8::7"},
			{`for=203.0.113.7;host="a,b;for=198.51.100.1\""`, "203.0.113.7"},
			{`for=198.51.100.1, for="203.0.113.7";proto=http`, "203.0.113.7"}, {`for=unknown`, "10.0.0.1"},
			{`for=198.51.100.1;x=", for=203.0.113.7`, "203.0.113.7"},
			{`for=198.51.100.1;x=", for=203.0.113.7;host="a\""`, "203.0.113.7"},
			{`for=198.51.100.1;x=", for="203.0.113.7:1";host=""`, "203.0.113.7"},
			{`for="_gazonk"`, "10.0.0.1"}, {`for=203.0.113.7, proto=https`, "10.0.0.1"},
		} {
			Expect(from("10.0.0.1:4711", rfc7239(read[0]))).To(Equal(read[1]), read[0])
		}
		Expect(from("10.0.0.1:4711", http.Header{"X-Forwarded-For": {"203.0.113.7"},
			"Forwarded": {"for=198.51.100.1"}})).To(Equal("203.0.113.7"))
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

	It("comes with one warning of a proxy that is not listed", func() {
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

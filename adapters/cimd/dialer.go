package cimd

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"
)

// newTransport returns a transport that checks each address after DNS and before it connects (C17), and makes a new connection for each fetch. It
// ignores proxies of the environment, because the check would then see only the proxy's address (C16). With Options.Proxy the addresses are checked
// before (C51).
func newTransport(o Options, l limits) *http.Transport {
	check := newAddressCheck(o)
	dialer := &net.Dialer{Timeout: l.dial, Control: check.control, Resolver: o.Resolver}
	transport := &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs},
		TLSHandshakeTimeout:    l.handshake,
		ResponseHeaderTimeout:  l.header,
		MaxResponseHeaderBytes: l.headerBytes,
		DisableCompression:     true,
		DisableKeepAlives:      true,
		ForceAttemptHTTP2:      true,
	}
	if o.Proxy != nil {
		proxy := egressProxy{url: o.Proxy, resolver: o.Resolver, check: check, timeout: l.dial}
		transport.Proxy, transport.DialContext, transport.OnProxyConnectResponse = proxy.proxy, proxy.dialer(o, l), checkConnect
	}
	return transport
}

// addressCheck refuses addresses that are not public (C18). The ranges of the library are from IANA's special-purpose registries. All IPv6 addresses
// outside 2000::/3 are refused, which covers mapped, NAT64 and link-local ones.
type addressCheck struct {
	guardian   *ssrf.Guardian
	denied     []netip.Prefix // by the operator; they take precedence over AllowLoopback
	allowNAT64 bool
}

func newAddressCheck(o Options) addressCheck {
	options := []ssrf.Option{ssrf.WithPorts(append([]uint16{443}, o.Ports...)...)}
	if o.AllowLoopback {
		options = append(options, ssrf.WithAnyPort(),
			ssrf.WithAllowedV4Prefixes(netip.MustParsePrefix("127.0.0.0/8")), ssrf.WithAllowedV6Prefixes(netip.MustParsePrefix("::1/128")))
	}
	return addressCheck{guardian: ssrf.New(options...), denied: o.DeniedPrefixes, allowNAT64: o.AllowNAT64}
}

// control is a net.Dialer's Control hook.
func (c addressCheck) control(network, address string, conn syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("parse the address: %w", err)
	}
	if c.allowNAT64 && ssrf.IPv6NAT64Prefix.Contains(target.Addr()) {
		bits := target.Addr().As16() // the last 32 are the IPv4 address (RFC 6052 §2.2)
		target = netip.AddrPortFrom(netip.AddrFrom4([4]byte(bits[12:])), target.Port())
	}
	for _, network := range c.denied {
		if ip := target.Addr().Unmap(); network.Contains(ip) {
			return fmt.Errorf("%s is in %s, which is denied", ip, network)
		}
	}
	return c.guardian.Safe(network, target.String(), conn)
}

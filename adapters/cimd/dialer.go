package cimd

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"github.com/pasteport/pasteport/domain/oauth"
)

// newTransport returns a transport that checks each address after DNS and before it connects, and
// makes a new connection for each fetch. It ignores proxies of the environment, because the check
// would then see only the proxy's address. With Options.Proxy the addresses are checked before.
func newTransport(o Config, l limits) *http.Transport {
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
		proxy := egressProxy{
			url:      o.Proxy,
			resolver: o.Resolver,
			check:    check,
			timeout:  l.dial,
		}
		transport.Proxy, transport.DialContext, transport.OnProxyConnectResponse = proxy.proxy, proxy.dialer(o, l),
			checkConnect
	}
	return transport
}

// newRoundTripper returns newTransport, and in development a transport for http, which connects to
// loopback only and uses no proxy.
func newRoundTripper(o Config, l limits) http.RoundTripper {
	secure := newTransport(o, l)
	if !o.AllowLoopback {
		return secure
	}
	o.Proxy = nil
	plain := newTransport(o, l)
	plain.DialContext = (&net.Dialer{Timeout: l.dial, Control: onlyLoopback, Resolver: o.Resolver}).DialContext
	return byScheme{secure, plain}
}

type byScheme struct{ secure, plain http.RoundTripper }

func (t byScheme) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "http" {
		return t.plain.RoundTrip(r)
	}
	return t.secure.RoundTrip(r)
}

// onlyLoopback is a net.Dialer's Control hook.
func onlyLoopback(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("parse the address: %w", err)
	}
	if !target.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("%w: %s is not on this computer, so its document must be on https", oauth.ErrMetadataAddress,
			target.Addr())
	}
	return nil
}

// addressCheck refuses addresses that are not public. The ranges of the library are from IANA's
// special-purpose registries. All IPv6 addresses outside 2000::/3 are refused, which covers mapped,
// NAT64 and link-local ones.
type addressCheck struct {
	guardian   *ssrf.Guardian
	denied     []netip.Prefix // by the operator; they take precedence over AllowLoopback
	allowNAT64 bool
}

func newAddressCheck(o Config) addressCheck {
	options := []ssrf.Option{ssrf.WithPorts(append([]uint16{443}, o.Ports...)...)}
	if o.AllowLoopback {
		options = append(options, ssrf.WithAnyPort(),
			ssrf.WithAllowedV4Prefixes(netip.MustParsePrefix("127.0.0.0/8")),
			ssrf.WithAllowedV6Prefixes(netip.MustParsePrefix("::1/128")))
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
			return fmt.Errorf("%w: %s is in %s, which is denied", oauth.ErrMetadataAddress, ip, network)
		}
	}
	if err := c.guardian.Safe(network, target.String(), conn); err != nil {
		return fmt.Errorf("%w: %w", oauth.ErrMetadataAddress, err)
	}
	return nil
}

// egressProxy is the HTTP proxy of the operator, for networks without direct access to the
// internet. Its own address is not checked.
type egressProxy struct {
	url      *url.URL
	resolver *net.Resolver
	check    addressCheck
	timeout  time.Duration // of resolving a name
}

// proxy is the Proxy function of an http.Transport. It checks the host of the request before the
// proxy is dialled.
func (p egressProxy) proxy(r *http.Request) (*url.URL, error) {
	if err := p.permit(r.Context(), r.URL); err != nil {
		return nil, fmt.Errorf("check the host before the proxy is dialled: %w", err)
	}
	return p.connectURL(), nil
}

// connectURL returns an http URL for an https proxy too, because the dialer makes its TLS
// connection: the transport would offer HTTP/2, over which it cannot send CONNECT.
func (p egressProxy) connectURL() *url.URL {
	port := cmp.Or(p.url.Port(), map[string]string{"http": "80", "https": "443"}[p.url.Scheme])
	return &url.URL{Scheme: "http", User: p.url.User, Host: net.JoinHostPort(p.url.Hostname(), port)}
}

// permit refuses a host that does not resolve or has an address that is not allowed. The proxy
// resolves the name again and may choose any of them.
func (p egressProxy) permit(ctx context.Context, target *url.URL) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	addresses, err := p.resolver.LookupNetIP(ctx, "ip", target.Hostname())
	if err != nil {
		return err
	}
	for _, address := range addresses {
		if err := p.check.permit(address.Unmap(), cmp.Or(target.Port(), "443")); err != nil {
			return err
		}
	}
	return nil
}

// permit checks an address to which the proxy would connect.
func (c addressCheck) permit(address netip.Addr, port string) error {
	network := "tcp6"
	if address.Is4() {
		network = "tcp4"
	}
	return c.control(network, net.JoinHostPort(address.String(), port), nil)
}

// dialer returns a DialContext function that connects to the proxy.
func (p egressProxy) dialer(o Config, l limits) func(ctx context.Context, network, address string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: l.dial, Resolver: p.resolver}
	if p.url.Scheme == "http" {
		return plain.DialContext
	}
	return (&tls.Dialer{NetDialer: plain, Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs}}).
		DialContext
}

// checkConnect distinguishes a refusal of the proxy from a response of the host behind it.
func checkConnect(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the proxy refuses to connect: %d", answer.StatusCode)
	}
	return nil
}

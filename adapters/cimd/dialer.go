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

	"github.com/pasteport/pasteport/domain/oauth/client"
)

// newTransport returns a transport that checks each address after DNS and before it connects, and
// makes a new connection for each fetch. It ignores proxies of the environment, because the check
// would then see only the proxy's address.
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
		check.through(transport, o, l.dial)
	}
	return transport
}

// onlyLoopback is a net.Dialer's Control hook.
func onlyLoopback(_, address string, _ syscall.RawConn) error {
	if target, _ := netip.ParseAddrPort(address); !target.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("%w: %s is not on this computer, so its document must be on https", client.ErrAddress,
			target.Addr())
	}
	return nil
}

// addressCheck refuses addresses that are not public. The ranges of the library are from IANA's
// special-purpose registries. All IPv6 addresses outside 2000::/3 are refused, which covers mapped,
// NAT64 and link-local ones.
type addressCheck struct{ guardian *ssrf.Guardian }

func newAddressCheck(o Config) addressCheck {
	options := []ssrf.Option{ssrf.WithPorts(append([]uint16{443}, o.Ports...)...)}
	if o.AllowLoopback {
		options = append(options, ssrf.WithAnyPort(),
			ssrf.WithAllowedV4Prefixes(netip.MustParsePrefix("127.0.0.0/8")),
			ssrf.WithAllowedV6Prefixes(netip.MustParsePrefix("::1/128")))
	}
	return addressCheck{ssrf.New(options...)}
}

// control is a net.Dialer's Control hook.
func (c addressCheck) control(network, address string, conn syscall.RawConn) error {
	if err := c.guardian.Safe(network, address, conn); err != nil {
		return fmt.Errorf("%w: %w", client.ErrAddress, err)
	}
	return nil
}

// through makes the transport use the HTTP proxy of the operator, for networks without direct
// access to the internet. Its own address is not checked; that of a site is, before the proxy is
// dialled. The transport cannot send CONNECT over HTTP/2, so it does not offer that.
func (c addressCheck) through(transport *http.Transport, o Config, limit time.Duration) {
	transport.ForceAttemptHTTP2 = false
	transport.DialContext = (&net.Dialer{Timeout: limit, Resolver: o.Resolver}).DialContext
	transport.Proxy = func(r *http.Request) (*url.URL, error) {
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		if err := c.permit(ctx, o.Resolver, r.URL); err != nil {
			return nil, fmt.Errorf("check the host before the proxy is dialled: %w", err)
		}
		return o.Proxy, nil
	}
	transport.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, r *http.Response) error {
		if r.StatusCode != http.StatusOK {
			return fmt.Errorf("the proxy refuses to connect: %d", r.StatusCode)
		}
		return nil
	}
}

// permit refuses a host that does not resolve or has an address that is not allowed. The proxy
// resolves the name again and may choose any of them.
func (c addressCheck) permit(ctx context.Context, resolver *net.Resolver, target *url.URL) error {
	addresses, err := resolver.LookupNetIP(ctx, "ip", target.Hostname())
	if err != nil {
		return err
	}
	for _, address := range addresses {
		network := "tcp6"
		if address = address.Unmap(); address.Is4() {
			network = "tcp4"
		}
		host := net.JoinHostPort(address.String(), cmp.Or(target.Port(), "443"))
		if err := c.control(network, host, nil); err != nil {
			return err
		}
	}
	return nil
}

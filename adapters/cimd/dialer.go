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

	"code.dny.dev/ssrf"

	"github.com/pasteport/pasteport/domain/oauth/client"
)

// newTransport returns a transport that checks each address after DNS and before it connects, and
// makes a new connection for each fetch. It ignores proxies of the environment, because the check
// would then see only the proxy's address.
//
// The HTTP proxy of the operator is for networks without direct access to the internet. Its own
// address is not checked; that of a site is, before the proxy is dialled. The transport cannot send
// CONNECT over HTTP/2, so it does not offer that.
func newTransport(o Config, l limits) *http.Transport {
	check := addressCheck(o)
	dialer := &net.Dialer{Timeout: l.dial, Control: check, Resolver: o.Resolver}
	transport := &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs},
		TLSHandshakeTimeout:    l.handshake,
		ResponseHeaderTimeout:  l.header,
		MaxResponseHeaderBytes: l.headerBytes,
		DisableCompression:     true,
		DisableKeepAlives:      true,
		ForceAttemptHTTP2:      o.Proxy == nil,
	}
	if o.Proxy == nil {
		return transport
	}
	dialer.Control = nil
	transport.Proxy = func(r *http.Request) (*url.URL, error) {
		ctx, cancel := context.WithTimeout(r.Context(), l.dial)
		defer cancel()
		if err := permit(ctx, o.Resolver, r.URL, check); err != nil {
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
	return transport
}

// control is a net.Dialer's Control hook.
type control = func(network, address string, _ syscall.RawConn) error

// onlyLoopback is a control that refuses addresses of other computers.
func onlyLoopback(_, address string, _ syscall.RawConn) error {
	if target, _ := netip.ParseAddrPort(address); !target.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("%w: %s is not on this computer, so its document must be on https", client.ErrAddress,
			target.Addr())
	}
	return nil
}

// addressCheck returns a control that refuses addresses that are not public. The ranges of the
// library are from IANA's special-purpose registries. All IPv6 addresses outside 2000::/3 are
// refused, which covers mapped, NAT64 and link-local ones.
func addressCheck(o Config) control {
	options := []ssrf.Option{ssrf.WithPorts(append([]uint16{443}, o.Ports...)...)}
	if o.AllowLoopback {
		options = append(options, ssrf.WithAnyPort(),
			ssrf.WithAllowedV4Prefixes(netip.MustParsePrefix("127.0.0.0/8")),
			ssrf.WithAllowedV6Prefixes(netip.MustParsePrefix("::1/128")))
	}
	guardian := ssrf.New(options...)
	return func(network, address string, conn syscall.RawConn) error {
		if err := guardian.Safe(network, address, conn); err != nil {
			return fmt.Errorf("%w: %w", client.ErrAddress, err)
		}
		return nil
	}
}

// permit refuses a host that does not resolve or has an address that is not allowed. The proxy
// resolves the name again and may choose any of them.
func permit(ctx context.Context, resolver *net.Resolver, target *url.URL, check control) error {
	addresses, err := resolver.LookupNetIP(ctx, "ip", target.Hostname())
	if err != nil {
		return err
	}
	for _, address := range addresses {
		network := "tcp6"
		if address = address.Unmap(); address.Is4() {
			network = "tcp4"
		}
		to := net.JoinHostPort(address.String(), cmp.Or(target.Port(), "443"))
		if err := check(network, to, nil); err != nil {
			return err
		}
	}
	return nil
}

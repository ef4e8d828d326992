// Package outbound connects to the servers of the site: over https, or over http on this computer
// and private networks only. Options checks a configured URL and makes the transport, which checks
// each address after DNS and uses no proxy of the environment, because the requests carry tokens.
// Reason describes a failure for the log without tokens.
package outbound

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	connectLimit = 2 * time.Second
	headerBytes  = 64 << 10
)

// Options configures the connections to the site.
type Options struct {
	RootCAs     *x509.CertPool // nil uses the system's
	Certificate Certificate    // of this client, for servers that require one (mutual TLS); nil for none
	Proxy       *url.URL       // http or https, for https requests; nil connects directly
}

// Certificate returns the certificate of this client for a handshake.
type Certificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error)

var errPublic = errors.New("http is for this computer and private networks only: use https")

// CheckURL checks an address of the site. Its errors do not repeat the address, which may hold a
// password.
func (o Options) CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case address != "" && !strings.Contains(address, "://"):
		return errors.New("it has no scheme: begin it with https://, or with http:// on this computer " +
			"and in private networks")
	case err != nil, u.Host == "", u.Scheme != "https" && u.Scheme != "http":
		return errors.New("it is not a URL: write it like https://cms.example.com/path")
	case u.User != nil, u.Fragment != "":
		return errors.New("it has a user or a fragment: leave them out")
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && u.Scheme == "http" && !isPrivate(ip) {
		return errPublic
	}
	return nil
}

// CheckProxy returns an oauth.Mistake in the field if Proxy is not the URL of a proxy and nothing
// else. It does not repeat the URL, which may hold a password.
func (o Options) CheckProxy(field string) error {
	u := o.Proxy
	if u == nil {
		return nil
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16)
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.HasSuffix(u.Host, ":") ||
		err != nil || port == 0 || strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "" {
		return oauth.NewMistake(field, "is not a URL of an HTTP proxy: write http://host:3128 or "+
			"https://host:3128, with user:password@ before the host if the proxy requires them, and nothing after "+
			"the port")
	}
	return nil
}

// Repeatable is a header for requests that may be sent twice. With this key and no values, net/http
// sends no header, but sends the request again if a reused connection breaks before the response.
const Repeatable = "Idempotency-Key"

// Transport returns a transport that keeps up to idle connections to each server, each for
// idleLimit. It sends https requests through the proxy, in a tunnel that hides the tokens from it.
// Requests over http go to private addresses, so they are sent directly.
func (o Options) Transport(idle int, idleLimit time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: connectLimit}
	plain := &net.Dialer{Timeout: connectLimit, Control: refusePublic}
	config := &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12, GetClientCertificate: o.Certificate}
	transport := &http.Transport{
		DialContext:            plain.DialContext,
		DialTLSContext:         (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext,
		MaxResponseHeaderBytes: headerBytes,
		MaxIdleConnsPerHost:    idle,
		IdleConnTimeout:        idleLimit,
		TLSHandshakeTimeout:    connectLimit, // in the tunnel of a proxy; a tls.Dialer has its own limit
	}
	if o.Proxy == nil {
		return transport
	}
	address := net.JoinHostPort(o.Proxy.Hostname(),
		cmp.Or(o.Proxy.Port(), map[string]string{"http": "80", "https": "443"}[o.Proxy.Scheme]))
	transport.Proxy = func(r *http.Request) (*url.URL, error) {
		if r.URL.Scheme != "https" {
			return nil, nil
		}
		return o.Proxy, nil
	}
	transport.DialContext = func(ctx context.Context, network, to string) (net.Conn, error) {
		if to == address { // which may be public
			return dialer.DialContext(ctx, network, to)
		}
		return plain.DialContext(ctx, network, to)
	}
	transport.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request,
		answer *http.Response) error {
		if answer.StatusCode == http.StatusOK {
			return nil
		}
		return Problem("the proxy answered " + strconv.Itoa(answer.StatusCode))
	}
	// From here on, DialTLSContext dials only the proxy, which does not get the client certificate.
	// The tunnel uses TLSClientConfig.
	toProxy := &tls.Dialer{NetDialer: dialer, Config: &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12}}
	transport.DialTLSContext = toProxy.DialContext
	transport.TLSClientConfig = config
	return transport
}

// refusePublic is a net.Dialer's Control hook, so it checks the address after DNS.
func refusePublic(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !isPrivate(to.Addr()) {
		return errPublic
	}
	return nil
}

// nat64 is the prefix of IPv6 addresses that end with an IPv4 address (RFC 6052 §2.1).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func isPrivate(ip netip.Addr) bool {
	if ip = ip.Unmap(); nat64.Contains(ip) {
		bits := ip.As16()
		ip = netip.AddrFrom4([4]byte(bits[12:]))
	}
	return ip.IsLoopback() || ip.IsPrivate()
}

// Problem is a reason why a request to the site failed. It is safe to log.
type Problem string

func (p Problem) Error() string { return string(p) }

// Problems of a connection that was made.
const (
	ErrNotInTime = Problem("it did not answer in time")
	ErrBroken    = Problem("the connection broke, or it does not speak HTTP")
)

// Reason turns an error of a request into a Problem. It keeps the text of errors from before the
// request was sent; later errors could quote the answer, which may hold a token.
func Reason(err error) error {
	var connecting *net.OpError
	var certificate *tls.CertificateVerificationError
	var name *net.DNSError
	var known Problem
	switch {
	case errors.As(err, &known):
		return known
	// Its text has the local port of the question to the name server, which differs each time.
	case errors.As(err, &name) && !name.IsNotFound:
		return Problem("it cannot be reached: no name server could look up " + name.Name)
	case errors.As(err, &certificate):
		return Problem("its certificate is not trusted: " + certificate.Err.Error())
	case errors.As(err, &connecting) && (connecting.Op == "dial" || connecting.Op == "proxyconnect"):
		return Problem("it cannot be reached: " + connecting.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return ErrNotInTime
	}
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return ErrNotInTime
	}
	return ErrBroken
}

// Package outbound reaches the servers of the site: over https, or over http on this computer and private networks only, whatever
// name leads there. Nothing that carries a token leaves through a proxy of the environment.
package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

const (
	connectLimit = 2 * time.Second
	headerBytes  = 64 << 10
)

// Options say how the site is reached.
type Options struct {
	AllowHTTP bool           // http too, to addresses of this computer and private networks only
	RootCAs   *x509.CertPool // the system's when nil
}

var errPublic = errors.New("http is for this computer and private networks only: use https")

// CheckURL finds what is wrong with an address of the site, without repeating it.
func (o Options) CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Host == "", u.Scheme != "https" && u.Scheme != "http":
		return errors.New("it is no URL: write it like https://cms.example.com/token")
	case u.User != nil, u.Fragment != "":
		return errors.New("it has a user or a fragment: leave them out")
	case u.Scheme == "http" && !o.AllowHTTP:
		return errors.New("it is not https: anybody on the way could read the tokens; use https, or allow http for this computer and private networks")
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && u.Scheme == "http" && !private(ip) {
		return errPublic
	}
	return nil
}

// Transport keeps up to idle connections to each server, for as long as idleLimit.
func (o Options) Transport(idle int, idleLimit time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: connectLimit}
	plain := &net.Dialer{Timeout: connectLimit, Control: refusePublic}
	return &http.Transport{
		DialContext: plain.DialContext,
		DialTLSContext: (&tls.Dialer{NetDialer: dialer, Config: &tls.Config{
			RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12,
		}}).DialContext,
		MaxResponseHeaderBytes: headerBytes, MaxIdleConnsPerHost: idle, IdleConnTimeout: idleLimit,
	}
}

// refusePublic looks at the address when the connection is made, whatever name led there.
func refusePublic(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !private(to.Addr()) {
		return errPublic
	}
	return nil
}

func private(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.IsLoopback() || ip.IsPrivate()
}

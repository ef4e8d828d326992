package load

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// socket is a TCP connection that is asked again and again whether something has come. Whoever sleeps instead has to be woken by the server that
// answers, which pays more for that than for most answers, and the more often the slower it is.
type socket struct {
	fd           int
	ends         time.Time    // of all patience
	looks, empty atomic.Int64 // how often it was asked, and in vain
}

// connect goes from one address of this computer to another.
func connect(from netip.Addr, to netip.AddrPort) (*socket, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening a socket: %w", err)
	}
	s := &socket{fd: fd}
	if err := s.set(from, to); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("connecting %s to %s: %w", from, to, err)
	}
	return s, nil
}

func (s *socket) set(from netip.Addr, to netip.AddrPort) error {
	if err := unix.SetsockoptInt(s.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return err
	}
	if err := unix.Bind(s.fd, &unix.SockaddrInet4{Addr: from.As4()}); err != nil {
		return err
	}
	if err := unix.Connect(s.fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}); err != nil {
		return err
	}
	return unix.SetNonblock(s.fd, true)
}

// Read lets others ask for theirs until something has come.
func (s *socket) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(s.fd, p)
		s.looks.Add(1)
		switch {
		case err == nil && n == 0 && len(p) > 0:
			return 0, io.EOF
		case err == nil:
			return n, nil
		case err == unix.EAGAIN && time.Now().After(s.ends):
			return 0, os.ErrDeadlineExceeded
		case err == unix.EAGAIN:
			s.empty.Add(1)
			runtime.Gosched()
		case err != unix.EINTR:
			return 0, err
		}
	}
}

// Write sends a request, which has to fit into what the system takes at once.
func (s *socket) Write(p []byte) (int, error) {
	n, err := unix.Write(s.fd, p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}

// Close ends the connection.
func (s *socket) Close() error { return unix.Close(s.fd) }

// ofThisComputer is another one of its addresses for each of many.
func ofThisComputer(one int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 0, 1 + byte(one/200), 1 + byte(one%200)})
}

func addressOf(host string) (netip.AddrPort, error) {
	found, err := net.ResolveTCPAddr("tcp4", host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	address := found.AddrPort()
	return netip.AddrPortFrom(address.Addr().Unmap(), address.Port()), nil
}

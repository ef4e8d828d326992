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

// socket is a TCP connection that polls for data. A client that sleeps must be woken by the server,
// which costs the server more CPU than most responses, and more often the slower it is.
type socket struct {
	fd           int
	ends         time.Time    // read deadline
	looks, empty atomic.Int64 // number of polls, and of polls without data
}

// connect opens a connection from a loopback address.
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

// Read polls until data has arrived, and lets other goroutines run in between.
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

// Write sends a request, which must fit into the socket's send buffer.
func (s *socket) Write(p []byte) (int, error) {
	n, err := unix.Write(s.fd, p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}

// Close ends the connection.
func (s *socket) Close() error { return unix.Close(s.fd) }

// ofThisComputer returns a different loopback address for each client.
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

package pasteporttest

import (
	"errors"
	"net"
)

// IsOpen reports whether the address of the site was open until now.
func (s *Site) IsOpen() bool { return !errors.Is(s.server.Listener.Close(), net.ErrClosed) }

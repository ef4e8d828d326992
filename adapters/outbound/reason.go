package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// Problem is why a server of the site could not be asked, in words that are fit for the log.
type Problem string

// Error implements error.
func (p Problem) Error() string { return string(p) }

// Reason says why a server of the site could not be asked, fit for the log. It keeps the text of errors from before anything was sent; later ones quote the answer.
func Reason(err error) error {
	var connecting *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return Problem("its certificate is not trusted: " + certificate.Err.Error())
	case errors.As(err, &connecting) && connecting.Op == "dial":
		return Problem("it cannot be reached: " + connecting.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return Problem("it did not answer in time")
	}
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return Problem("it did not answer in time")
	}
	return Problem("the connection broke, or it does not speak HTTP")
}

package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// Problem is a reason why a request to the site failed. It is safe to log.
type Problem string

// Error implements error.
func (p Problem) Error() string { return string(p) }

// Reason turns an error of a request into a Problem. It keeps the text of errors from before the request was sent; later errors could quote
// the answer, which may hold a token.
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

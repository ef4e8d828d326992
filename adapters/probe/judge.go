package probe

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pasteport/pasteport/adapters/outbound"
	"github.com/pasteport/pasteport/adapters/presentation"
)

// answers are what the requests of a probe have shown while none has decided.
type answers struct {
	names, statuses []string
	forbidden       bool   // 403 to initialize
	unauthorized    bool   // 401 to another request
	redirect        string // its target, or "elsewhere"
	failed          bool   // a status that says nothing about the address
}

// judge returns the result if the answer to the request with the index decides.
func (a *answers) judge(got head, index int, credentials presentation.Credentials) (r Result, decided bool) {
	switch {
	case outbound.RefusesHost(got.status, got.beginningOfError):
		return Result{RefusesHost, strconv.Itoa(got.status)}, true
	case got.status == http.StatusBadRequest && strings.Contains(string(got.beginningOfError), "HTTPS"): // the texts of Go and nginx
		return Result{State: SpeaksTLS}, true
	case got.isSuccess() && strings.HasPrefix(got.contentType, "text/html"):
		return Result{State: HTMLPage}, true
	case got.isSuccess():
		return Result{State: Accepted}, true
	case got.status == http.StatusUnauthorized && index == Initialize:
		return Result{State: RefusesKeys}, true
	case got.status == http.StatusUnauthorized:
		a.unauthorized = true
	case got.status == http.StatusForbidden && index == Initialize && !got.retries:
		a.forbidden = true
	case got.status >= 300 && got.status < 400:
		a.redirect = targetOf(got, credentials)
	case !isUnsupported(got.status):
		a.failed = true
	}
	a.names, a.statuses = append(a.names, requests[index].name), append(a.statuses, strconv.Itoa(got.status))
	return Result{}, false
}

// conclude returns the result after the last request.
func (a *answers) conclude() Result {
	statuses := strings.Join(a.statuses, ", ") + " to " + strings.Join(a.names, ", ")
	switch {
	case a.forbidden:
		return Result{State: Forbids}
	case a.redirect != "":
		return Result{Redirects, a.redirect}
	case a.failed:
		return Result{Failing, statuses}
	case a.unauthorized:
		return Result{State: RefusesKeys}
	}
	return Result{WrongPath, statuses}
}

const maxTarget = 500 // bytes

// targetOf names the target of a redirect unless it repeats a part of the credentials.
func targetOf(got head, credentials presentation.Credentials) string {
	if got.location == "" || len(got.location) > maxTarget || credentials.Repeated()(got.location) {
		return "elsewhere"
	}
	return "to " + got.location
}

// isUnsupported reports whether a status means that the server does not support the revision or transport of a request.
func isUnsupported(status int) bool {
	return slices.Contains([]int{
		http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType,
		http.StatusNotImplemented,
	}, status)
}

// judgeError judges a request without a response. Only texts from before the request was sent are kept, because later ones can quote the answer.
func judgeError(err error) Result {
	reason := outbound.Reason(err)
	var unknown x509.UnknownAuthorityError
	var certificate *tls.CertificateVerificationError
	var connection *net.OpError
	var proxy outbound.Problem
	switch {
	case errors.As(err, &unknown):
		return Result{Untrusted, reason.Error()}
	case errors.As(err, &certificate):
		return Result{WrongTLS, reason.Error()}
	case errors.Is(err, http.ErrSchemeMismatch):
		return Result{State: SpeaksNoTLS}
	case errors.As(err, &connection) && connection.Op == "remote error": // crypto/tls names alerts like this
		return Result{WrongTLS, "it ended the TLS connection: " + connection.Err.Error()}
	case errors.As(err, &connection) && connection.Op == "proxyconnect": // net/http names the connection to a proxy like this
		return Result{ProxyRefuses, "the proxy cannot be reached: " + connection.Err.Error()}
	case errors.As(err, &proxy):
		return Result{ProxyRefuses, reason.Error()}
	case errors.Is(reason, outbound.ErrNotInTime):
		return Result{State: Slow}
	case errors.Is(reason, outbound.ErrBroken):
		return Result{State: Broken}
	}
	return Result{Unreachable, reason.Error()}
}

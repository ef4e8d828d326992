package check

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/adapters/outbound"
)

// answers are what the requests of a probe have shown while none has decided.
type answers struct {
	names, statuses []string
	forbidden       bool   // 403 to initialize
	unauthorized    bool   // 401 to another request
	metadata        string // that its challenge names
	invalid         bool   // 400 or 422 to initialize, with which some servers answer a malformed key
	redirect        string // its target, or "elsewhere"
	failed          bool   // a status that says nothing about the address
	// A status of success without a result, which is also how some servers answer a method that
	// they do not know.
	success Result
}

// judge returns the result if the answer to the request with the index decides.
func (a *answers) judge(got head, index int, credentials secret.Credentials) (r Result, decided bool) {
	switch {
	case outbound.RefusesHost(got.status, got.beginningOfError):
		return Result{State: RefusesHost, Detail: strconv.Itoa(got.status)}, true
	case got.asksForTLS():
		return Result{State: SpeaksTLS}, true
	case got.isSuccess() && strings.HasPrefix(got.contentType, "text/html"):
		return Result{State: HTMLPage}, true
	case got.isSuccess() && got.content == resultOfMCP:
		return Result{State: Accepted}, true
	case got.isSuccess():
		a.noResult(got, index)
	case got.status == http.StatusUnauthorized && index == Initialize:
		return Result{State: RefusesKeys, Metadata: got.metadata}, true
	case got.status == http.StatusUnauthorized:
		a.unauthorized, a.metadata = true, got.metadata
	case got.wantsFewer():
		return Result{State: TryLater, Detail: strconv.Itoa(got.status), RetryAfter: got.retryAfter}, true
	case got.status == http.StatusForbidden && index == Initialize:
		a.forbidden = true
	case got.status >= 300 && got.status < 400:
		a.redirect = targetWithout(credentials, got.target)
	case !isUnsupported(got.status):
		a.failed = true
	}
	a.invalid = a.invalid ||
		index == Initialize && (got.status == http.StatusBadRequest || got.status == http.StatusUnprocessableEntity)
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
		return Result{State: Redirects, Detail: a.redirect}
	case a.failed:
		return Result{State: Failing, Detail: statuses}
	case a.success.State != "":
		return a.success
	case a.unauthorized:
		return Result{State: RefusesKeys, Metadata: a.metadata}
	}
	return Result{State: WrongPath, Detail: statuses}
}

// noResult keeps what an answer without a result means. That to initialize takes precedence,
// because every server knows the method.
func (a *answers) noResult(got head, index int) {
	if a.success.State != "" && index != Initialize {
		return
	}
	a.success = Result{State: NoResult, Detail: strconv.Itoa(got.status)}
	if got.content == errorOfJSONRPC && index == Initialize {
		a.success.State = AnswersError
	}
}

// targetWithout names the target of a redirect unless it repeats a part of the credentials.
func targetWithout(credentials secret.Credentials, target string) string {
	if target == "" || credentials.Repeated()(target) {
		return "elsewhere"
	}
	return target
}

// isUnsupported reports whether a status means that the server does not support the revision or
// transport of a request.
func isUnsupported(status int) bool {
	return slices.Contains([]int{
		http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
		http.StatusUnsupportedMediaType,
		http.StatusNotImplemented,
	}, status)
}

// judgeError judges a request without a response. Only texts from before the request was sent are
// kept, because later ones can quote the answer.
func judgeError(err error) Result {
	reason := outbound.Reason(err)
	var unknown x509.UnknownAuthorityError
	var certificate *tls.CertificateVerificationError
	var connection *net.OpError
	var proxy outbound.Problem
	switch {
	case errors.As(err, &unknown):
		return Result{State: Untrusted, Detail: reason.Error()}
	case errors.As(err, &certificate):
		return Result{State: WrongTLS, Detail: reason.Error()}
	case strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`): // an alert of TLS
		return Result{State: SpeaksTLS}
	case errors.Is(err, http.ErrSchemeMismatch):
		return Result{State: SpeaksNoTLS}
	case errors.As(err, &connection) && connection.Op == "remote error": // crypto/tls names alerts like this
		return Result{State: WrongTLS, Detail: "it ended the TLS connection: " + connection.Err.Error()}
	// net/http names the connection to a proxy like this.
	case errors.As(err, &connection) && connection.Op == "proxyconnect":
		return Result{State: ProxyRefuses, Detail: "the proxy cannot be reached: " + connection.Err.Error()}
	case errors.As(err, &proxy):
		return Result{State: ProxyRefuses, Detail: reason.Error()}
	case errors.Is(reason, outbound.ErrNotInTime):
		return Result{State: Slow}
	case errors.Is(reason, outbound.ErrBroken):
		return Result{State: Broken}
	}
	return Result{State: Unreachable, Detail: reason.Error()}
}

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

	"github.com/pasteport/pasteport/adapters/internal/outbound"
)

const unknownRemedy = "let it answer 401 to a key that it does not know"

// answers are what the requests of a probe have shown while none has decided.
type answers struct {
	requests, statuses []string
	forbidden          bool   // 403 to initialize
	unauthorized       bool   // 401 to another request
	metadata           string // that its challenge names
	invalid            bool   // 400 or 422 to initialize, with which some servers answer a malformed key
	redirect           string // its target in our words
	failed             bool   // a status that says nothing about the address
	// A status of success without a result, which is also how some servers answer a method that
	// they do not know.
	success Result
}

// judge returns the result if the answer to the request with the index decides.
func (a *answers) judge(got head, index int) (r Result, decided bool) {
	status := strconv.Itoa(got.status)
	switch {
	case outbound.RefusesHost(got.status, got.beginningOfError):
		return wrong("it refuses the host name of the request with "+status, outbound.HostAdvice), true
	case got.asksForTLS():
		return speaksTLS, true
	case got.isSuccess() && strings.HasPrefix(got.contentType, "text/html"):
		return wrong("it answered with an HTML page, so that it is not an MCP server",
			pathRemedy+", not to a page for people"), true
	case got.isSuccess() && got.content == resultOfMCP:
		return Result{State: Accepted, Cause: "reachable"}, true
	case got.isSuccess():
		a.noResult(got, index)
	case got.status == http.StatusUnauthorized && index == Initialize:
		return refusesKeys(got.metadata), true
	case got.status == http.StatusUnauthorized:
		a.unauthorized, a.metadata = true, got.metadata
	case got.wantsFewer():
		return Result{
			State: TryLater,
			Cause: "it answered " + status + ", so that it wants fewer requests",
			Remedy: "wait, as the gateway does; if this lasts, allow the address of the gateway more requests " +
				"there, or end the lockout",
			RetryAfter: got.retryAfter,
		}, true
	case got.status == http.StatusForbidden && index == Initialize:
		a.forbidden = true
	case index == Initialize && (got.status == http.StatusBadRequest || got.status == http.StatusUnprocessableEntity):
		a.invalid = true
	case got.status >= 300 && got.status < 400:
		a.redirect = got.target
	case !isUnsupported(got.status):
		a.failed = true
	}
	a.requests, a.statuses = append(a.requests, requests[index].name), append(a.statuses, status)
	return Result{}, false
}

var (
	speaksTLS          = wrong("it speaks TLS", "begin upstream with https://")
	speaksOldTransport = wrong("it speaks HTTP+SSE of 2024-11-05", "run it with Streamable HTTP")
)

func refusesKeys(metadata string) Result {
	return Result{State: RefusesKeys, Cause: "reachable, refuses unknown keys", Metadata: metadata}
}

// conclude returns the result after the last request.
func (a *answers) conclude() Result {
	observed := "it answered " + strings.Join(a.statuses, ", ") + " to " + strings.Join(a.requests, ", ")
	switch {
	case a.forbidden:
		return Result{
			State: Forbids,
			Cause: "it answered 403 with the token and without one, so the token may be invalid, or the server or a " +
				"firewall refuses the gateway",
			Remedy: unknownRemedy +
				"; if people with a valid token cannot connect, allow the address of the gateway there",
		}
	case a.redirect != "":
		return wrong("it redirects "+a.redirect+", which is not followed",
			"set upstream to the address of the MCP server itself")
	case a.invalid && !a.unauthorized && a.success.State == "":
		return Result{
			State:  Uncertain,
			Cause:  observed + ", so it may refuse keys like this, or no MCP server is at this path",
			Remedy: unknownRemedy + "; if people with a valid key cannot connect, " + pathRemedy,
		}
	case a.failed:
		return down(observed, serverRemedy)
	case a.success.State != "":
		return a.success
	case a.unauthorized:
		return refusesKeys(a.metadata)
	}
	return wrong(observed+", so no MCP server with Streamable HTTP is at this path", pathRemedy)
}

// noResult keeps what an answer without a result means. That to initialize takes precedence,
// because every server knows the method.
func (a *answers) noResult(got head, index int) {
	status := strconv.Itoa(got.status)
	switch {
	case index == Initialize && got.content == errorOfJSONRPC:
		a.success = Result{
			State:  Uncertain,
			Cause:  "it answered initialize with a JSON-RPC error and " + status + ", so it may refuse keys like this",
			Remedy: "read its log; " + unknownRemedy,
		}
	case index == Initialize || a.success.State == "":
		a.success = wrong("it answered "+status+" with other content than a result of MCP", pathRemedy)
	}
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

const (
	tlsRemedy = "use the host name of its certificate in upstream, and check that the certificate is valid now; set " +
		"upstream-cert if it requires one of the gateway"
	proxyRemedy = "check upstream-proxy, and whether the proxy allows this server"
)

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
		return wrong(reason.Error(), "set upstream-ca to a PEM file with the certificate of its authority")
	case errors.As(err, &certificate):
		return wrong(reason.Error(), tlsRemedy)
	case strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`): // an alert of TLS
		return speaksTLS
	case errors.Is(err, http.ErrSchemeMismatch):
		return wrong("it does not speak TLS",
			"begin upstream with http://, on this computer or in a private network, or let the server speak TLS")
	case errors.As(err, &connection) && connection.Op == "remote error": // crypto/tls names alerts like this
		return wrong("it ended the TLS connection: "+connection.Err.Error(), tlsRemedy)
	// net/http names the connection to a proxy like this.
	case errors.As(err, &connection) && connection.Op == "proxyconnect":
		return wrong("the proxy cannot be reached: "+connection.Err.Error(), proxyRemedy)
	case errors.As(err, &proxy):
		return wrong(reason.Error(), proxyRemedy)
	case errors.Is(reason, outbound.ErrNotInTime):
		return down(reason.Error(), serverRemedy)
	case errors.Is(reason, outbound.ErrBroken):
		return down(reason.Error(), "check the port in upstream, and read the log of the server")
	}
	return down(reason.Error(), addressRemedy)
}

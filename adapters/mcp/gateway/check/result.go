package check

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/pasteport/pasteport/adapters/internal/outbound"
)

// State is what a probe has found.
type State string

// The states. People can connect in the first three.
const (
	NotChecked    State = "not-checked"
	Works         State = "works"
	Refuses       State = "refuses"       // the credential
	Down          State = "down"          // an outage, which may pass by itself
	Misconfigured State = "misconfigured" // until the operator corrects something
)

// Result is the judgement of a probe. Its texts are for operators and contain no secret.
type Result struct {
	State      State
	Cause      string        // completes "the server …"
	Remedy     string        // what to do; "" for nothing
	RetryAfter time.Duration // until the server wants the next request; 0 if it names no time
}

// Unknown is the result before the first probe.
var Unknown = Result{State: NotChecked, Cause: "not checked yet"}

// IsProblem reports whether people cannot connect.
func (r Result) IsProblem() bool { return r.State == Down || r.State == Misconfigured }

// RefusesKey reports whether the server refuses the key that was sent, and not the gateway.
func (r Result) RefusesKey() bool { return r.State == Refuses && r.Remedy == "" }

// String returns the cause and the remedy.
func (r Result) String() string {
	if r.Remedy == "" {
		return r.Cause
	}
	return r.Cause + ": " + r.Remedy
}

// Mistake returns the result for a mistake of the operator.
func Mistake(cause, remedy string) Result { return Result{Misconfigured, cause, remedy, 0} }

// AcceptsAny is the result for a server that accepts a random key, and is the only one that checks
// keys.
var AcceptsAny = Mistake("it accepts any token, even a random one", "let the server check tokens, or choose another "+
	"verifier (file, http or introspection), and credential none if the server needs no token")

const (
	pathRemedy    = "set upstream to the full URL of the MCP endpoint, which often ends in /mcp"
	serverRemedy  = "read its log and check its load; if it is a proxy, check the server behind it"
	addressRemedy = "start the MCP server, or correct upstream; in a container, localhost and 127.0.0.1 are the " +
		"container itself"
	tlsRemedy = "begin upstream with https:// or http://, whichever the server speaks, use the host name of its " +
		"certificate, and set upstream-cert if it requires one of the gateway"
	keyRemedy = "let it answer 401 to a key that it does not know; if people with a valid key cannot connect, allow " +
		"the address of the gateway there, or " + pathRemedy
)

// judgeError judges a request without a response. Only texts from before the request was sent are
// kept, because later ones can quote the answer.
func judgeError(err error) Result {
	reason := outbound.Reason(err)
	var connection *net.OpError
	var proxy outbound.Problem
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return Mistake(reason.Error(), "set upstream-ca to a PEM file with the certificate of its authority")
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return Mistake(reason.Error(), tlsRemedy)
	case errors.Is(err, http.ErrSchemeMismatch):
		return Mistake("it does not speak TLS", tlsRemedy)
	case errors.As(err, &connection) && connection.Op == "remote error": // an alert of TLS
		return Mistake("it ended the TLS connection: "+connection.Err.Error(), tlsRemedy)
	case errors.As(err, &connection) && connection.Op == "proxyconnect", errors.As(err, &proxy):
		return Mistake(cmp.Or(string(proxy), "the proxy cannot be reached"),
			"check upstream-proxy, and whether the proxy allows this server")
	case errors.Is(reason, outbound.ErrNotInTime), errors.Is(reason, outbound.ErrBroken):
		return Result{State: Down, Cause: reason.Error(), Remedy: serverRemedy}
	}
	return Result{State: Down, Cause: reason.Error(), Remedy: addressRemedy}
}

package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/outbound"
)

// State is what a probe has found, from a closed list.
type State string

// The states. The first six are no problem.
const (
	Accepted      State = "reachable"            // it accepts the credential
	RefusesKeys   State = "refuses-unknown-keys" // 401, or 403 if it answers 401 without a key
	ChecksNoKeys  State = "checks-no-keys"       // it accepts any key, and another verifier checks keys
	ProgramFound  State = "program-found"
	OfEachPerson  State = "address-of-each-person"
	NotChecked    State = "not-checked" // yet
	IsGateway     State = "gateway-itself"
	HasOAuth      State = "has-oauth"
	AcceptsAny    State = "accepts-any-key"
	RefusesSecret State = "refuses-secret"
	RequiresKey   State = "requires-a-key"
	Forbids       State = "forbidden"
	RefusesHost   State = "refuses-host"
	Unreachable   State = "unreachable"
	Slow          State = "slow"
	Failing       State = "failing"
	TryLater      State = "try-later" // 429, or an error with a time to try again
	Broken        State = "broken-connection"
	Untrusted     State = "untrusted-certificate"
	WrongTLS      State = "wrong-tls"
	SpeaksTLS     State = "speaks-tls"
	SpeaksNoTLS   State = "speaks-no-tls"
	ProxyRefuses  State = "proxy-refuses"
	Redirects     State = "redirects"
	HTMLPage      State = "html-page"
	NoResult      State = "no-mcp-result"
	AnswersError  State = "json-rpc-error" // with a status of success
	WrongPath     State = "wrong-path"
	NoProgram     State = "program-missing"
	CallsFail     State = "calls-fail" // although the last check found no problem
)

// kind is what a state means for people who connect.
type kind int

const (
	works     kind = iota
	uncertain      // some may be able to connect
	outage         // may pass by itself
	misconfigured
)

// meaning is a row of the table. The cause completes "the server …" and has %s for the detail of
// the answer.
type meaning struct {
	kind          kind
	cause, remedy string
}

const pathRemedy = "set upstream to the full URL of the MCP endpoint, which often ends in /mcp"

// meanings is the one table of causes and remedies.
var meanings = map[State]meaning{
	Accepted:     {works, "reachable", ""},
	RefusesKeys:  {works, "reachable, refuses unknown keys", ""},
	ChecksNoKeys: {works, "reachable, accepts any key: only the verifier checks keys", ""},
	ProgramFound: {works, "the program was found at %s; each session starts it", ""},
	OfEachPerson: {works, "its address is a field, so it is checked when people connect", ""},
	NotChecked:   {works, "not checked yet", ""},

	IsGateway: {misconfigured, "it names the OAuth metadata of this gateway, so it is the gateway itself",
		"set upstream to the URL of the MCP server behind the gateway"},
	HasOAuth: {uncertain, "it has OAuth of its own, so it may not accept keys",
		"if it does, there is nothing to do; else clients have to connect to it directly"},

	AcceptsAny: {misconfigured, "it accepts any token, even a random one",
		"let the server check tokens, or choose another verifier (file, http or introspection), and credential none " +
			"if the server needs no token"},
	RefusesSecret: {misconfigured, "it answered %s to the secret for all callers", "check upstream-secret and present"},
	RequiresKey: {misconfigured, "it answered %s without a key, but credential is none",
		"choose credential host-token or static"},
	Forbids: {uncertain, "it answered 403 with the token and without one, so the token may be invalid, or the server " +
		"or a firewall refuses the gateway",
		"if people with a valid token cannot connect, allow the address of the gateway there"},
	RefusesHost: {misconfigured, "it refuses the host name of the request with %s", outbound.HostAdvice},
	Unreachable: {outage, "%s",
		"start the MCP server, or correct upstream; in a container, localhost and 127.0.0.1 are the container itself"},
	Slow: {outage, "it did not answer in time",
		"read its log and check its load; if it is a proxy, check the server behind it"},
	Failing: {outage, "it answered %s", "read its log; if it is a proxy, check the server behind it"},
	TryLater: {outage, "it answered %s, so that it wants fewer requests",
		"wait, as the gateway does; if this lasts, allow the address of the gateway more requests there, or end the " +
			"lockout"},
	Broken: {outage, "the connection broke, or it does not speak HTTP",
		"check the port in upstream, and read the log of the server"},
	Untrusted: {misconfigured, "%s", "set upstream-ca to a PEM file with the certificate of its authority"},
	WrongTLS: {misconfigured, "%s", "use the host name of its certificate in upstream, and check that the " +
		"certificate is valid now; set upstream-cert if it requires one of the gateway"},
	SpeaksTLS: {misconfigured, "it speaks TLS", "begin upstream with https://"},
	SpeaksNoTLS: {misconfigured, "it does not speak TLS",
		"begin upstream with http://, on this computer or in a private network, or let the server speak TLS"},
	ProxyRefuses: {misconfigured, "%s", "check upstream-proxy, and whether the proxy allows this server"},
	Redirects: {misconfigured, "it redirects %s, which is not followed",
		"set upstream to the address of the MCP server itself"},
	HTMLPage: {misconfigured, "it answered with an HTML page, so that it is no MCP server",
		pathRemedy + ", not to a page for people"},
	NoResult: {misconfigured, "it answered %s with other content than a result of MCP", pathRemedy},
	AnswersError: {uncertain, "it answered initialize with a JSON-RPC error and %s, so it may refuse keys like this",
		"read its log; it has to answer 401 to a key that it does not know"},
	WrongPath: {misconfigured, "it answered %s, so no MCP server is at this path", pathRemedy},
	CallsFail: {outage, "%s",
		"read the log of the server and check its load; if it is a proxy, check the server behind it"},
	NoProgram: {misconfigured, "%s",
		"install it where the PATH of the gateway finds it, or write its full path in upstream"},
}

// Result is the judgement of one probe. Its texts are for operators and contain no secret.
type Result struct {
	State  State
	Detail string // that the cause names, such as the status

	// how the key was sent that the server refuses, such as "in the header
	// X-Api-Key"; "" for another state
	Sent     string
	Metadata string // address of the metadata of OAuth that the server names with a refusal; "" for none

	RetryAfter time.Duration // until the server wants the next request; 0 if it names no time
}

// Works reports whether the server answers as an MCP server, so that people can connect.
func (r Result) Works() bool { return r.kind() == works }

// MayWork reports whether the server works, or whether only a person's key can show that it does
// not.
func (r Result) MayWork() bool { return r.kind() == works || r.kind() == uncertain }

// IsKnown reports whether the server itself was checked.
func (r Result) IsKnown() bool { return r.State != NotChecked && r.State != OfEachPerson }

// ForVerifier returns what the result means if the server is also the verifier of keys.
func (r Result) ForVerifier() Result {
	if r.State == ChecksNoKeys {
		r.State = AcceptsAny
	}
	return r
}

// IsOutage reports whether the server does not answer, which may pass by itself.
func (r Result) IsOutage() bool { return r.kind() == outage }

// WantsFewer reports whether checks at short intervals can prolong the problem.
func (r Result) WantsFewer() bool { return r.State == TryLater }

// IsMistake reports whether the problem lasts until the operator corrects the configuration.
func (r Result) IsMistake() bool { return r.kind() == misconfigured }

func (r Result) kind() kind { return meanings[r.State].kind }

// Cause states what was found.
func (r Result) Cause() string {
	cause := meanings[r.State].cause
	if strings.Contains(cause, "%s") {
		cause = fmt.Sprintf(cause, r.Detail)
	}
	if r.Sent != "" {
		cause += ", sent " + r.Sent
	}
	return cause
}

// Remedy states what to do; "" if the server works.
func (r Result) Remedy() string { return meanings[r.State].remedy }

// String returns the cause and the remedy.
func (r Result) String() string {
	if r.Remedy() == "" {
		return r.Cause()
	}
	return r.Cause() + ": " + r.Remedy()
}

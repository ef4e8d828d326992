package check

import "time"

// State is what a probe has found, from a closed list.
type State string

// The states. The server works in the first four.
const (
	NotChecked    State = "not-checked" // yet, or only by people who connect
	Accepted      State = "reachable"
	RefusesKeys   State = "refuses-unknown-keys" // 401, or 403 if it answers 401 without a key
	ChecksNoKeys  State = "checks-no-keys"       // it accepts any key, and another verifier checks keys
	Forbids       State = "forbidden"            // 403 with a key and without one
	Uncertain     State = "uncertain"            // only a person's key can show whether it works
	Down          State = "down"                 // an outage, which may pass by itself
	TryLater      State = "try-later"            // 429, or an error with a time to try again
	Misconfigured State = "misconfigured"        // until the operator corrects something
)

// Result is the judgement of one probe. Its texts are for operators and contain no secret.
type Result struct {
	State  State
	Cause  string // completes "the server …"
	Remedy string // what to do; "" if the server works

	// Metadata is the address of the OAuth metadata that the server names with a refusal; "" for
	// none.
	Metadata   string
	RetryAfter time.Duration // until the server wants the next request; 0 if it names no time
	OfCalls    bool          // calls fail, although the last check has found no problem
}

const (
	pathRemedy    = "set upstream to the full URL of the MCP endpoint, which often ends in /mcp"
	serverRemedy  = "read its log and check its load; if it is a proxy, check the server behind it"
	addressRemedy = "start the MCP server, or correct upstream; in a container, localhost and 127.0.0.1 are the " +
		"container itself"
	keyRemedy = "let the server check tokens, or choose another verifier (file, http or introspection), and " +
		"credential none if the server needs no token"
)

// Results that are not those of a probe.
var (
	Unknown    = Result{State: NotChecked, Cause: "not checked yet"}
	AnyKey     = Result{State: ChecksNoKeys, Cause: "reachable, accepts any key: only the verifier checks keys"}
	AcceptsAny = wrong("it accepts any token, even a random one", keyRemedy)
	IsGateway  = wrong("it names the OAuth metadata of this gateway, so it is the gateway itself",
		"set upstream to the URL of the MCP server behind the gateway")
	HasOAuth = Result{
		State:  Uncertain,
		Cause:  "it has its own OAuth, so it may not accept keys",
		Remedy: "if it does, there is nothing to do; else clients have to connect to it directly",
	}
)

// Program is the result for a program that was found at the path.
func Program(path string) Result {
	return Result{State: Accepted, Cause: "the program was found at " + path + "; each session starts it"}
}

// NoProgram is the result for a program that cannot be run.
func NoProgram(cause string) Result {
	return wrong(cause, "install it where the PATH of the gateway finds it, or write its full path in upstream")
}

// FailedCalls is the result when calls fail, although the last check has found no problem.
func FailedCalls(err error) Result {
	r := down(err.Error(), serverRemedy)
	r.OfCalls = true
	return r
}

// RefusesSecret is the result for a server that refuses the secret for all callers.
func RefusesSecret(status, sent string) Result {
	return wrong("it answered "+status+" to the secret for all callers, sent "+sent,
		"check upstream-secret and present")
}

// RequiresKey is the result for a server that gets no credential.
func RequiresKey(status string) Result {
	return wrong("it answered "+status+" without a key, but credential is none",
		"choose credential host-token or static")
}

func wrong(cause, remedy string) Result {
	return Result{State: Misconfigured, Cause: cause, Remedy: remedy}
}

func down(cause, remedy string) Result { return Result{State: Down, Cause: cause, Remedy: remedy} }

// Works reports whether the server answers as an MCP server, so that people can connect.
func (r Result) Works() bool { return r.MayWork() && r.State != Forbids && r.State != Uncertain }

// MayWork reports whether the server works, or whether only a person's key can show that it does
// not.
func (r Result) MayWork() bool { return !r.IsOutage() && !r.IsMistake() }

// IsKnown reports whether the server itself was checked.
func (r Result) IsKnown() bool { return r.State != NotChecked }

// ForVerifier returns what the result means if the server is also the verifier of keys.
func (r Result) ForVerifier() Result {
	if r.State == ChecksNoKeys {
		return AcceptsAny
	}
	return r
}

// IsOutage reports whether the server does not answer, which may pass by itself.
func (r Result) IsOutage() bool { return r.State == Down || r.State == TryLater }

// WantsFewer reports whether checks at short intervals can prolong the problem.
func (r Result) WantsFewer() bool { return r.State == TryLater }

// IsMistake reports whether the problem lasts until the operator corrects the configuration.
func (r Result) IsMistake() bool { return r.State == Misconfigured }

// String returns the cause and the remedy.
func (r Result) String() string {
	if r.Remedy == "" {
		return r.Cause
	}
	return r.Cause + ": " + r.Remedy
}

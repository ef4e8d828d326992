package oauth

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Kind is the reason of a refusal. Several kinds may share one RFC error code, because the error
// page distinguishes more reasons than the response to a client.
type Kind struct{ name, code string }

// Code returns the error code of the RFCs, for example "invalid_grant".
func (k Kind) Code() string { return k.code }

// String returns the name of the kind, for logs.
func (k Kind) String() string { return k.name }

func namedAs(code string) Kind { return Kind{name: code, code: code} }

// The kinds of RFC 6749 §4.1.2.1 and §5.2, RFC 8707 §2 and RFC 6750 §3.1.
var (
	InvalidRequest          = namedAs("invalid_request")
	InvalidClient           = namedAs("invalid_client")
	InvalidGrant            = namedAs("invalid_grant")
	UnsupportedGrantType    = namedAs("unsupported_grant_type")
	UnsupportedResponseType = namedAs("unsupported_response_type")
	InvalidScope            = namedAs("invalid_scope")
	InvalidTarget           = namedAs("invalid_target")
	AccessDenied            = namedAs("access_denied")
	TemporarilyUnavailable  = namedAs("temporarily_unavailable")
	InvalidToken            = namedAs("invalid_token")
	InsufficientScope       = namedAs("insufficient_scope")
	InvalidRedirectURI      = namedAs("invalid_redirect_uri")    // RFC 7591 §3.2.2
	InvalidClientMetadata   = namedAs("invalid_client_metadata") // RFC 7591 §3.2.2
)

// Kinds that are finer than their code, for the error page, the log and the trace.
var (
	MalformedClientID      = Kind{"malformed_client_id", "invalid_client"}
	ClientUnreachable      = Kind{"client_unreachable", "invalid_client"}
	InvalidClientDocument  = Kind{"invalid_client_document", "invalid_client"}
	ClientNotAllowed       = Kind{"client_not_allowed", "unauthorized_client"}
	UnsupportedClient      = Kind{"unsupported_client", "unauthorized_client"}
	LostRegistration       = Kind{"lost_registration", "invalid_client"}
	TooManyRegistrations   = Kind{"too_many_registrations", "temporarily_unavailable"}
	ClientBusy             = Kind{"client_busy", "temporarily_unavailable"}
	UnregisteredRedirect   = Kind{"unregistered_redirect", "invalid_request"}
	StateTooLong           = Kind{"state_too_long", "invalid_request"}
	StateNotPrintable      = Kind{"state_not_printable", "invalid_request"}
	InvalidTicket          = Kind{"invalid_ticket", "invalid_request"}
	ExpiredTicket          = Kind{"expired_ticket", "invalid_request"}
	UsedTicket             = Kind{"used_ticket", "invalid_request"}
	MissingHostToken       = Kind{"missing_host_token", "invalid_request"}
	TooManyGuesses         = Kind{"too_many_guesses", "temporarily_unavailable"}
	TooManyFailures        = Kind{"too_many_failures", "temporarily_unavailable"}
	TooManyCalls           = Kind{"too_many_calls", "access_denied"}
	WrongHostToken         = Kind{"wrong_host_token", "access_denied"}
	OtherHostToken         = Kind{"other_host_token", "access_denied"}
	ToolsChanged           = Kind{"tools_changed", "access_denied"}
	HostTokenNotVerifiable = Kind{"host_token_not_verifiable", "temporarily_unavailable"}
	MisconfiguredVerifier  = Kind{"misconfigured_verifier", "temporarily_unavailable"}
)

// Sentinels: failures of stores, verifiers and upstream servers, and causes of refusals.
var (
	ErrNotFound       = errors.New("oauth: not found")
	ErrDuplicate      = errors.New("oauth: duplicate secret")
	ErrUnavailable    = errors.New("oauth: the store is unavailable")
	ErrOtherSecret    = errors.New("oauth: the store was used with another server secret")
	ErrCodeStillValid = errors.New("oauth: this form was approved with the same token before, " +
		"and its code is still valid")
	ErrReplayed       = errors.New("oauth: authorization code replayed")
	ErrRetried        = errors.New("oauth: authorization code sent again within ten seconds of its redemption")
	ErrReused         = errors.New("oauth: refresh token reused")
	ErrHostTokenLost  = errors.New("oauth: sealed host token cannot be opened")
	ErrUnknownSession = errors.New("oauth: the MCP server does not know this session")
	ErrUnknownBearer  = errors.New("oauth: the site does not know this token")
)

// Error is a refusal. Its Description may be sent to the client: it is fixed text and never repeats
// input.
type Error struct {
	Kind        Kind
	Rule        string // its number in the catalogue of rules, for logs and the trace
	Description string
	RetryAfter  time.Duration // until a retry can succeed; 0 when unknown
	cause       error
}

func (e *Error) Error() string {
	return e.Kind.name + ": " + e.Detail()
}

// Detail returns the description and the cause, for the operator.
func (e *Error) Detail() string {
	if e.cause == nil {
		return e.Description
	}
	return e.Description + ": " + strings.TrimPrefix(e.cause.Error(), "oauth: ")
}

// Unwrap returns the cause, which is for logs only.
func (e *Error) Unwrap() error { return e.cause }

// Refuse builds a refusal under a rule of the catalogue. The causes are for errors.Is and logs.
func Refuse(kind Kind, rule, description string, causes ...error) error {
	return RefuseFor(0, kind, rule, description, causes...)
}

// RefuseFor builds a refusal of a request that may succeed after wait.
func RefuseFor(wait time.Duration, kind Kind, rule, description string, causes ...error) error {
	return &Error{
		Kind:        kind,
		Rule:        rule,
		Description: description,
		RetryAfter:  wait,
		cause:       errors.Join(causes...),
	}
}

// KindOf returns the kind of the refusal in err's chain; ok is false if the chain has none.
func KindOf(err error) (kind Kind, ok bool) {
	kind = RefusalOf(err).Kind
	return kind, kind != Kind{}
}

// RefusalOf returns the refusal in err's chain, or a zero one if the chain has none.
func RefusalOf(err error) Error {
	if refused, ok := errors.AsType[*Error](err); ok {
		return *refused
	}
	return Error{}
}

// tokenForm is the form of the tokens, codes and client secrets of this server. A shorter piece of
// a token or code contains only a part of the id of its grant, which is not secret.
var tokenForm = regexp.MustCompile(`pp[arcs]_[A-Za-z0-9_-]{16,}`)

// tokenKinds names the secrets of this server by their prefixes, which all have four bytes.
var tokenKinds = map[string]string{
	string(AccessTokenSecret):  "[access token]",
	string(RefreshTokenSecret): "[refresh token]",
	string(CodeSecret):         "[code]",
	ClientSecretPrefix:         "[client secret]",
}

// MaskTokens replaces each token, code and client secret of this server in a text by the name of
// its kind. Clients put them where they do not belong, and such texts reach logs.
func MaskTokens(text string) string {
	return tokenForm.ReplaceAllStringFunc(text, func(token string) string { return tokenKinds[token[:4]] })
}

// Mistake is an error in a field of a Config or of options. Its text names the field, the problem
// and the remedy.
type Mistake struct {
	Field string // the name of the field, such as Limits.MaxSessions, or of its setting
	err   error
}

// NewMistake formats the text after the name of the field, as fmt.Errorf does.
func NewMistake(field, sentence string, values ...any) *Mistake {
	return &Mistake{field, fmt.Errorf(sentence, values...)}
}

func (m *Mistake) Error() string { return m.Of(m.Field) }

func (m *Mistake) Unwrap() error { return m.err }

// Of returns the text with another name in place of Field, such as that of a flag.
func (m *Mistake) Of(name string) string {
	text := m.err.Error()
	if strings.HasPrefix(text, ":") {
		return name + text
	}
	return name + " " + text
}

// mistakes are the errors that a check has found.
type mistakes []error

// add adds a Mistake, as NewMistake formats it.
func (m *mistakes) add(field, sentence string, values ...any) {
	*m = append(*m, NewMistake(field, sentence, values...))
}
